#pragma once

#include "learner.hpp"

#include <penstock/train/trainer.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::train {

// A step that had begun where a checkpoint was written: its text, and the gradients that belong to it.

/// Of which there is no batch: null.
nlohmann::json to_json(const begun_step& step, const trainer_options& options);

/// What a run makes of it.
struct begun_in_file {
  begun_step step{};                    ///< that it goes on with; without batches: none
  std::vector<state_item> gradients{};  ///< which it takes with it
  std::string left{};                   ///< why it makes that step anew, in a sentence; empty: it does not
};
/// Reads it from the checkpoint's text, whose identity is this run's, and looks which gradients are there. One that
/// cannot have been written, as of more batches than a step has, is refused with train::error; one of a run that takes
/// other steps is left.
begun_in_file begun_in(const std::filesystem::path& file, const nlohmann::json& there, const learner& to,
                       const trainer_options& options);

/// Refuses, with train::error, a step that has begun but does not end within its epoch: how many batches that has, no
/// checkpoint says.
void check_place(const position& at, std::uint64_t batches_per_epoch);

}  // namespace penstock::train
