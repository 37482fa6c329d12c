#pragma once

#include "data.hpp"

#include <penstock/train/memory_plan.hpp>
#include <penstock/train/trainer.hpp>

#include <optional>
#include <string>

namespace examples {

/// A run that is planned but not allocated.
struct planned_session {
  penstock::gpu::device device;
  penstock::train::trainer_options trainer;
  penstock::train::memory_plan plan;
  penstock::pipeline::opened training;
  std::optional<penstock::pipeline::opened> testing;
  std::string testing_name;  ///< "test", or "validation" where its rows are split off from the training set's
};

/// Plans a run within the budget. Where a batch of the wanted size does not fit, smaller ones are accumulated to the
/// same step, and other levers are pulled: see train::fit_step(). Prints which and why. Throws gpu::budget_error where
/// nothing helps.
planned_session plan_session(const train_options& o, const training_data& data);

}  // namespace examples
