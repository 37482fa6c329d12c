#pragma once

#include <penstock/train/metrics.hpp>
#include <penstock/train/trainer.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace examples {

/// What the classes are called: by their labels, or their numbers.
std::vector<std::string> names_of_classes(const penstock::train::trainer_options& trainer);

/// Each class with its rows, precision and recall, and where there are few classes what each was taken for.
std::string to_text(const penstock::train::confusion_matrix& counts, const std::vector<std::string>& names);
nlohmann::json to_json(const penstock::train::confusion_matrix& counts, const std::vector<std::string>& names);

}  // namespace examples
