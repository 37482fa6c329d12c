#pragma once

#include <penstock/io/writer.hpp>
#include <penstock/train/trainer.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::train {

// What of a checkpoint grows with the number of classes. It is in arrays: the JSON of a file is bounded.

/// Names as UTF-8 (those of a file may be any bytes), and factors of the loss; empty where there are none.
struct class_arrays {
  std::vector<std::string> names{};
  std::vector<double> weights{};
};

/// `own_model`: its name, whose loss takes no weights; empty: it is the stage.
class_arrays classes_of(const std::string& own_model, const trainer_options& options);

/// How much of them there is, for the checkpoint's JSON.
nlohmann::json to_json(const class_arrays& classes);

/// Writes what there is, and adds the checksums by their paths.
void write_classes(io::writer& to, const class_arrays& classes, nlohmann::json& sums);

/// What `there` says that the file holds; of format 4, which had them in its JSON, that. Throws train::error, and
/// nlohmann::json::exception for what is not there.
std::vector<std::string> class_names_in(const std::filesystem::path& file, const nlohmann::json& there);
std::vector<double> class_weights_in(const std::filesystem::path& file, const nlohmann::json& there);

}  // namespace penstock::train
