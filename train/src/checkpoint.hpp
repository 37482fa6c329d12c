#pragma once

#include "learner.hpp"

#include <penstock/train/predictor.hpp>
#include <penstock/train/trainer.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace penstock::train {

/// Refuses a model, or options, of which a checkpoint could not be read back: of JSON there is a bound. Throws
/// std::invalid_argument.
void check_describable(learner& model, const trainer_options& options);
/// The file's datasets are the model's state items, the gradients of a step that has begun, names and weights of
/// classes under /classes/, and of the stage /normalisation/mean and /deviation; the attribute "penstock" of the root
/// is JSON with everything else. See trainer::save and trainer::resume.
void save_checkpoint(const std::filesystem::path& file, learner& from, const trainer_options& options,
                     const position& at, fault_seam faults);
/// The model alone: its options, and its weights and statistics. See predictor.
predictor_options read_model(const std::filesystem::path& file);
/// See labels_of().
class_labels read_labels(const std::filesystem::path& file);
using item_writer =
    std::function<void(const state_item&, std::size_t offset, const std::byte* from, std::size_t bytes)>;
struct loaded_weights {
  input_statistics statistics;
  std::string checksum;  ///< of the JSON, which has those of the arrays
};
loaded_weights load_weights(const std::filesystem::path& file, const mlp_options& model,
                            const std::vector<state_item>& items, const item_writer& write);
/// Where the run stands, and why it will not give the bits of the one that was not stopped (empty: it will).
struct resumed_run {
  position at;
  std::string difference;
};
/// See check_checkpoint().
void check_run(const std::filesystem::path& file, const trainer_options& options);
/// `torn`: set from the first byte that is written to the model until all is.
resumed_run load_checkpoint(const std::filesystem::path& file, learner& to, const trainer_options& options, bool& torn);

}  // namespace penstock::train
