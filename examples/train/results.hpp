#pragma once

#include "session.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace examples {

/// What one epoch came to.
struct epoch_result {
  penstock::train::epoch_progress training;
  std::optional<penstock::train::metrics> testing;
  bool of_values = false;  ///< regression: its quality is the RMSE, not the accuracy
  double rows_per_second = 0;
  double gigabytes_per_second = 0;
};

/// Prints the memory plan: budget, items, what lies outside the budget.
void print_plan(const planned_session& session, const penstock::gpu::budget& limits);
/// Prints the line of an epoch.
void print_epoch(const epoch_result& epoch, std::uint64_t epochs);

nlohmann::json to_json(const planned_session& session);
nlohmann::json to_json(const epoch_result& epoch);

}  // namespace examples
