#include "results.hpp"

#include "rehearsal.hpp"

#include <penstock/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

namespace examples {

namespace train = penstock::train;
namespace gpu = penstock::gpu;

namespace {

/// What the first steps take beside the plan.
std::string taken_by_steps(const planned_session& session, bool measure) {
  if (!measure) return "come with the first steps, and are in --json afterwards";
  try {
    return fmt::format("about {}, as measured with the steps of a small model of the same layers",
                       penstock::format_bytes(rehearsed_bytes(session.device, session.trainer)));
  } catch (const std::exception& e) {  // as where other processes have left no room for it
    return fmt::format("were not measured: {}", e.what());
  }
}

/// The line for context, modules and graph executables.
std::string outside_budget(const planned_session& session, bool measure) {
  if (session.device.is_host())
    return "outside the budget: none, since the host has no context, modules or graph executables of a device";
  const gpu::memory_size size = gpu::memory_of(session.device);
  return fmt::format(
      "outside the budget: CUDA's context, with what other processes hold, {} of the device's {}; loaded kernels "
      "(modules) and recorded steps (graph executables): {}",
      penstock::format_bytes(size.total_bytes - size.free_bytes), penstock::format_bytes(size.total_bytes),
      taken_by_steps(session, measure));
}

}  // namespace

void print_plan(const planned_session& session, const gpu::budget& limits, bool measure) {
  const train::trainer_options& trainer = session.trainer;
  fmt::print("device: {}\nmodel: {}, {} parameters\nloss: {}\noptimizer: {}\n", session.device.description(),
             train::to_text(trainer.stage.model), train::parameters(trainer.stage.model),
             train::to_text(trainer.stage.loss), train::to_text(trainer.stage.optimizer));
  fmt::print("steps: {} x {} rows of {}, {}\n", trainer.accumulate, trainer.stage.rows, session.plan.training.rows,
             session.plan.training.order);
  for (const std::string& field : session.plan.training.field_reports) fmt::print("{}\n", field);
  fmt::print("\n{}", gpu::to_text(session.plan.ledger, limits));
  fmt::print("{}\n\n", outside_budget(session, measure));
  std::fflush(stdout);
}

result_form form_of(const planned_session& session, const train_options& o) {
  const train::stage_options& stage = session.trainer.stage;
  return {train::classes_of(stage.loss, stage.model.outputs) == 0, o.top_k, session.testing_name,
          session.trainer.accumulate};
}

std::string quality_of(const train::metrics& m, const result_form& form) {
  if (form.of_values) return fmt::format("RMSE {:.4f}", m.rmse());
  const std::string accuracy = fmt::format("accuracy {:.4f}", m.accuracy());
  return form.top_k == 0 ? accuracy : fmt::format("{}, top-{} {:.4f}", accuracy, form.top_k, m.top_k_accuracy());
}

void add_metrics(nlohmann::json& to, const std::string& set, const train::metrics& m, const result_form& form) {
  if (form.of_values)
    to[set + "_rmse"] = m.rmse();
  else
    to[set + "_accuracy"] = m.accuracy();
  if (form.top_k != 0) to[fmt::format("{}_top_{}_accuracy", set, form.top_k)] = m.top_k_accuracy();
}

void print_epoch(const epoch_result& epoch, std::uint64_t epochs) {
  const train::epoch_progress& t = epoch.training;
  std::string text = fmt::format("epoch {}/{}: loss {:.4f}, train {}", t.epoch + 1, epochs, t.training.loss(),
                                 quality_of(t.training, epoch.form));
  if (epoch.testing) text += fmt::format(", {} {}", epoch.form.testing_name, quality_of(*epoch.testing, epoch.form));
  if (t.seconds > 0)
    text += fmt::format(", {:.0f} rows/s, {:.3f} GB/s", epoch.rows_per_second, epoch.gigabytes_per_second);
  if (t.skipped > 0) text += fmt::format(", {} steps skipped so far", t.skipped);
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

std::string used_of(const train::memory_snapshot& memory, const gpu::budget& limits) {
  return fmt::format("device {} of {}", penstock::format_bytes(memory.used(gpu::memory_kind::device)),
                     penstock::format_bytes(limits.device_bytes));
}

nlohmann::json to_json(const train::memory_snapshot& memory) {
  nlohmann::json uses = nlohmann::json::array();
  for (const train::memory_use& use : memory.uses)
    uses.push_back({{"category", std::string(train::name_of(use.category))},
                    {"kind", std::string(gpu::name_of(use.kind))},
                    {"planned_bytes", use.planned_bytes},
                    {"allocated_bytes", use.allocated_bytes},
                    {"used_bytes", use.used_bytes},
                    {"peak_bytes", use.peak_bytes}});
  return {{"uses", std::move(uses)},
          {"derived", {"used_bytes", "peak_bytes"}},  // from rows and plans; the rest is looked up, or planned
          {"device_free_bytes", memory.device_free_bytes},
          {"process_bytes", memory.process_bytes},
          {"process_peak_bytes", memory.process_peak_bytes}};
}

nlohmann::json to_json(const planned_session& session) {
  nlohmann::json items = nlohmann::json::array();
  for (const auto& item : session.plan.ledger.items())
    items.push_back({{"kind", std::string(gpu::name_of(item.kind))}, {"name", item.name}, {"bytes", item.bytes}});
  nlohmann::json planned;
  for (const gpu::memory_kind kind : gpu::memory_kinds)
    planned[std::string(gpu::name_of(kind)) + "_bytes"] = session.plan.ledger.total(kind);
  planned["items"] = items;
  const train::stage_options& stage = session.trainer.stage;
  nlohmann::json result = {{"device", session.device.description()},
                           {"model", train::to_text(stage.model)},
                           {"parameters", train::parameters(stage.model)},
                           {"optimizer", train::to_text(stage.optimizer)},
                           {"batch_rows", stage.rows},
                           {"accumulate", session.trainer.accumulate},
                           {"seed", stage.seed},
                           {"rows", session.plan.training.rows},
                           {"plan", planned}};
  if (session.device.is_cuda()) {
    const gpu::memory_size size = gpu::memory_of(session.device);
    result["outside_budget"] = {{"device_total_bytes", size.total_bytes},
                                {"before_run_bytes", size.total_bytes - size.free_bytes}};
  }
  return result;
}

void add_outside_budget(nlohmann::json& results) {
  if (!results.contains("outside_budget")) return;
  nlohmann::json& outside = results["outside_budget"];
  const auto bytes_of = [](const nlohmann::json& of, const char* what) { return of.at(what).get<std::size_t>(); };
  const std::size_t taken = bytes_of(outside, "device_total_bytes") - bytes_of(results["memory"], "device_free_bytes");
  const std::size_t known = bytes_of(outside, "before_run_bytes") + bytes_of(results["plan"], "device_bytes");
  outside["since_bytes"] = taken - std::min(taken, known);
}

nlohmann::json to_json(const epoch_result& epoch) {
  const train::epoch_progress& t = epoch.training;
  nlohmann::json result = {{"epoch", t.epoch + 1},
                           {"loss", t.training.loss()},
                           {"rows_per_s", epoch.rows_per_second},
                           {"gb_per_s", epoch.gigabytes_per_second},
                           {"seconds", t.seconds},
                           {"step_of_epoch", steps_in(t.batches, epoch.form.accumulate)},
                           {"steps", t.steps},
                           {"learning_rate", t.learning_rate},
                           {"skipped", t.skipped},
                           {"device_bytes", epoch.device_bytes}};
  if (t.seconds == 0)  // trained by a run that was stopped before it could say so
    for (const char* measured : {"rows_per_s", "gb_per_s", "seconds"}) result.erase(measured);
  add_metrics(result, "train", t.training, epoch.form);
  if (!epoch.testing) return result;
  result[epoch.form.testing_name + "_loss"] = epoch.testing->loss();
  add_metrics(result, epoch.form.testing_name, *epoch.testing, epoch.form);
  return result;
}

}  // namespace examples
