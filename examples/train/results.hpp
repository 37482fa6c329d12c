#pragma once

#include "session.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace examples {

/// How results are shown.
struct result_form {
  bool of_values = false;             ///< regression: its quality is the RMSE, not the accuracy
  std::size_t top_k = 0;              ///< 0: not shown
  std::string testing_name = "test";  ///< what is evaluated on
  std::size_t accumulate = 1;         ///< batches of a step
};
/// Steps of an epoch that are made of its first `batches`.
inline std::uint64_t steps_in(std::uint64_t batches, std::size_t accumulate) {
  return batches / accumulate + (batches % accumulate != 0 ? 1 : 0);
}
result_form form_of(const planned_session& session, const train_options& o);

/// What one epoch came to.
struct epoch_result {
  penstock::train::epoch_progress training;
  std::optional<penstock::train::metrics> testing;
  result_form form{};
  std::size_t device_bytes = 0;  ///< used at its end
  double rows_per_second = 0;
  double gigabytes_per_second = 0;
};

/// Prints the memory plan: budget, items, what lies outside the budget. `measure`: on CUDA, what the first steps take
/// beside it is measured, in some megabytes of the device's memory; a run has its own steps for that.
void print_plan(const planned_session& session, const penstock::gpu::budget& limits, bool measure);
/// Prints the line of an epoch.
void print_epoch(const epoch_result& epoch, std::uint64_t epochs);

/// "accuracy 0.9000, top-5 0.9900", "RMSE 0.1000".
std::string quality_of(const penstock::train::metrics& m, const result_form& form);
/// Adds what the rows of `set` ("train", "test") came to: "test_accuracy".
void add_metrics(nlohmann::json& to, const std::string& set, const penstock::train::metrics& m,
                 const result_form& form);

/// "device 14.2 MiB of 16.0 MiB".
std::string used_of(const penstock::train::memory_snapshot& memory, const penstock::gpu::budget& limits);

/// What is known before the run; on CUDA, with what is taken of the device's memory then.
nlohmann::json to_json(const planned_session& session);
/// Where results have "memory": on CUDA, what was taken of the device's memory since, beside the plan. Kernels that
/// were loaded, steps that were recorded, the rest of the driver's pages, and what other processes have taken
/// meanwhile.
void add_outside_budget(nlohmann::json& results);
nlohmann::json to_json(const penstock::train::memory_snapshot& memory);
nlohmann::json to_json(const epoch_result& epoch);

}  // namespace examples
