#include "session.hpp"

#include <penstock/io/error.hpp>
#include <penstock/pipeline/calibration.hpp>
#include <penstock/train/levers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace examples {
namespace {

namespace gpu = penstock::gpu;
namespace train = penstock::train;
using namespace penstock::literals;

std::size_t elements_of(const penstock::pipeline::opened& rows, std::string_view name) {
  std::size_t elements = 1;
  for (const auto& field : rows.fields())
    if (field.name == name)
      for (const std::uint64_t extent : field.row_shape) elements *= extent;
  return elements;
}

/// The rows to evaluate on have as many values of each field as those to train on.
void check_alike(const training_data& data, const penstock::pipeline::opened& training,
                 const penstock::pipeline::opened& testing) {
  const auto compare = [&](const char* name, const penstock::io::location& where) {
    const std::size_t trained = elements_of(training, name), tested = elements_of(testing, name);
    if (trained != tested)
      throw penstock::io::error(
          fmt::format("a row of the test set has {} values, and one of the training set {}", tested, trained),
          {.file = where.file.string(), .dataset = where.dataset});
  };
  compare("x", data.testing->x.front());
  if (!data.testing->x2.empty()) compare("x2", data.testing->x2.front());
  compare("label", data.testing->y.front());
}

void check_second_inputs(const training_data& data, const penstock::pipeline::opened& training) {
  if (data.training.x2.empty() || elements_of(training, "x") == elements_of(training, "x2")) return;
  const penstock::io::location& where = data.training.x2.front();
  throw penstock::io::error(fmt::format("a row has {} values, and one of the first inputs {}",
                                        elements_of(training, "x2"), elements_of(training, "x")),
                            {.file = where.file.string(), .dataset = where.dataset});
}

/// The rows to evaluate on, where there are some.
std::optional<penstock::pipeline::opened> open_testing(const train_options& o, const training_data& data,
                                                       std::size_t batch_rows) {
  if (!data.testing) return {};
  auto testing = open_rows(*data.testing, data, batch_rows, o);
  if (testing.rows() == 0)
    throw penstock::io::error(
        fmt::format("there are no rows in the {} set{}", data.testing_name,
                    !data.testing->only           ? ""
                    : data.testing->group.empty() ? "; keep a larger --validation share"
                                                  : "; keep a larger --validation share, or groups of fewer rows"),
        {.file = data.testing->x.front().file.string(), .dataset = data.testing->x.front().dataset});
  return testing;
}

/// Smaller budgets have smaller workspaces, so that rows find room.
std::size_t workspace_of(const gpu::budget& limits) { return std::clamp(limits.device_bytes / 16, 256_KiB, 32_MiB); }

train::trainer_options trainer_of(const train_options& o, std::size_t inputs, const training_data& data) {
  // Before the aggregate: GCC 12 destroys what it has made of one twice where an initialiser throws (its bug 66139).
  if (o.top_k > data.outputs)
    throw std::invalid_argument(fmt::format("--top-k {}: there are {} classes", o.top_k, data.outputs));
  const train::optimizer_options optimizer = optimizer_of(o);
  const train::loss_options loss = loss_of(o);
  const train::schedule schedule = schedule_of(o);
  train::check(o.stop);
  const auto offloads = [&](const char* what) {
    return std::find(o.offload.begin(), o.offload.end(), what) != o.offload.end();
  };
  train::stage_options stage{.model = {.inputs = inputs,
                                       .hidden = o.hidden,
                                       .outputs = data.outputs,
                                       .activation = train::parse_activation(o.activation),
                                       .layer_norm = o.layer_norm,
                                       .dropout = o.dropout,
                                       .pair = pair_of(o)},
                             .loss = loss,
                             .class_weights = data.class_weights,
                             .targets = data.targets,
                             .top_k = o.top_k != 0 ? o.top_k : 5,
                             .confusion = o.confusion,
                             .optimizer = optimizer,
                             .rows = o.batch_rows,
                             .precision = train::parse_precision(o.precision),
                             .recompute_layers = o.recompute,
                             .offload = {.optimizer = offloads("optimizer"), .activations = offloads("activations")},
                             .clip_norm = o.clip_norm,
                             .seed = o.order.seed,
                             .non_finite = o.skip_non_finite ? train::non_finite::skip : train::non_finite::fail,
                             .workspace_bytes = workspace_of(o.budget),
                             .threads = o.threads};
  if (o.hidden == std::vector<std::size_t>{0}) stage.model.hidden.clear();
  return {.stage = stage,
          .accumulate = o.accumulate,
          .schedule = schedule,
          .x2 = data.training.x2.empty() ? "" : "x2",
          .weight = !have_weights(data) ? ""
                    : skips_damaged(o)  ? o.damaged.mask
                                        : "weight",
          .stored_weight = data.training.weights.empty() ? "" : "weight",
          .class_names = data.training.labels.names,
          .stop = o.stop,
          .report_every = o.log_steps};
}

/// A run's memory in a budget. What the passes over the labels took, one after the other, is a part of it, though it is
/// free again. Throws gpu::budget_error.
train::memory_plan plan_run(gpu::device device, const gpu::budget& limits, const train::stage_options& stage,
                            const training_data& data, const penstock::pipeline::opened& training,
                            const std::optional<penstock::pipeline::opened>& testing) {
  const std::size_t bytes =
      std::max(data.training.labels.mask_bytes, data.testing ? data.testing->labels.mask_bytes : 0);
  gpu::ledger masks;
  if (bytes > 0) masks.add(gpu::memory_kind::host, "pipeline: which rows count, while labels are looked at", bytes);
  const std::size_t taken = masks.total(gpu::memory_kind::host);
  gpu::budget left = limits;
  left.host_bytes -= std::min(left.host_bytes, taken);
  try {
    train::memory_plan plan = train::plan(device, left, stage, training, testing ? &*testing : nullptr);
    plan.ledger.add(masks);
    return plan;
  } catch (const gpu::budget_error& e) {
    gpu::ledger items = e.items();
    items.add(masks);
    gpu::budget smallest = e.smallest();
    smallest.host_bytes += taken;
    throw gpu::budget_error("training does not fit the budget", std::move(items), limits, smallest);
  }
}

/// The smallest budget so far that a step would fit, of those that were asked about: that to which the fewest bytes
/// must be added, of whatever kind.
class smallest_budget {
 public:
  void note(const train::stage_options& stage, const gpu::budget_error& refused) {
    std::size_t missing = 0, all = 0;
    for (const gpu::memory_kind kind : gpu::memory_kinds) {
      const std::size_t bytes = refused.smallest().of(kind);
      missing += bytes - std::min(bytes, refused.limits().of(kind));
      all += bytes;
    }
    if (stage_ && std::pair(missing, all) >= std::pair(missing_, all_)) return;
    stage_ = stage, budget_ = refused.smallest(), missing_ = missing, all_ = all;
  }
  const train::stage_options& stage() const { return *stage_; }
  const gpu::budget& bytes() const { return budget_; }

 private:
  std::optional<train::stage_options> stage_;
  gpu::budget budget_;
  std::size_t missing_ = 0, all_ = 0;
};

/// How the training rows travel, chosen by trying in the memory that the plan leaves them.
penstock::pipeline::opened open_calibrated(const train_options& o, const training_data& data, gpu::device device,
                                           std::size_t batch_rows, const train::memory_plan& plan) {
  gpu::ledger others;
  for (const gpu::memory_kind kind : gpu::memory_kinds)
    others.add(kind, "training", plan.ledger.total(kind) - plan.pipelines.total(kind));
  const auto rows = describe_rows(data.training, data, batch_rows, o);
  const auto found = penstock::pipeline::calibrate(rows, device, o.budget, others);
  fmt::print("{}\n", to_text(found));
  return (rows | found).open();
}

/// More rows than the training set has would be padding.
void print_largest(const train::stage_options& stage, const train::fits_budget& fits, std::uint64_t training_rows) {
  constexpr std::size_t most = std::size_t{1} << 24;
  const std::size_t rows =
      train::largest_rows(stage, fits, static_cast<std::size_t>(std::min<std::uint64_t>(most, training_rows)));
  fmt::print(
      "the largest batches that fit{}: {} rows{}\n",
      stage.recompute_layers != 0 || stage.offload.optimizer || stage.offload.activations ? " with these levers" : "",
      rows,
      rows == training_rows ? ", all of the training set"
      : rows == most        ? " and more"
                            : "");
}

/// Batches have one size, and what no row fills is computed like the rows.
void print_padding(std::size_t batch_rows, std::uint64_t training_rows) {
  if (batch_rows > training_rows)
    fmt::print(
        "a batch of {0} rows holds the whole training set, {1} rows, and padding, which takes as long as rows do: "
        "--batch-rows {1} makes the same steps, to rounding\n",
        batch_rows, training_rows);
}

/// A step is made of equal batches, and some numbers of rows have no divisors: says which number near to it has one.
void print_better_rows(const train_options& o, const train::stage_options& asked, const train::fitted_step& step,
                       const train::fits_budget& fits) {
  const auto& used = step.used;
  if (std::all_of(used.begin(), used.end(), [](train::lever l) { return l == train::lever::micro_batch; })) return;
  const std::size_t largest = train::largest_rows(asked, fits, o.batch_rows);
  if (largest == 0 || 2 * step.stage.rows > largest) return;
  const std::size_t parts = (o.batch_rows + largest - 1) / largest, rows = (o.batch_rows + parts - 1) / parts;
  if (rows < o.floor_rows) return;
  fmt::print(
      "batches of {} rows would fit, but {} has no divisor near that: with --batch-rows {} steps would be made of "
      "{} batches of {} rows\n",
      largest, o.batch_rows, rows * parts, parts, rows);
}

/// Says which of the levers that were asked for frees no device memory: it costs time alone. Two may each free nothing
/// beside the other, and the same bytes without it: one that was told of is left out of what the next is compared in.
void print_idle_levers(const train_options& o, gpu::device device, train::stage_options stage) {
  const auto bytes_of = [&](const train::stage_options& s) {
    return train::plan(device, s).total(gpu::memory_kind::device);
  };
  const auto tell = [&](const std::string& option, const train::stage_options& without) {
    const std::size_t bytes = bytes_of(stage), bytes_without = bytes_of(without);
    if (bytes < bytes_without) return;
    fmt::print("{} frees nothing here: training takes {} of device memory with it, and {} without\n", option,
               penstock::format_bytes(bytes), penstock::format_bytes(bytes_without));
    stage = without;
  };
  train::stage_options without = stage;
  without.recompute_layers = 0;
  if (o.recompute != 0) tell(fmt::format("--recompute {}", o.recompute), without);
  for (const std::string& what : o.offload) {
    without = stage;
    (what == "optimizer" ? without.offload.optimizer : without.offload.activations) = false;
    tell("--offload " + what, without);
  }
}

/// Steps between looks at the device, so that a short epoch shows progress too.
std::uint64_t looks_every(const train::trainer_options& trainer, std::uint64_t training_rows) {
  constexpr std::uint64_t looks_of_an_epoch = 20;
  const std::uint64_t step_rows = trainer.stage.rows * trainer.accumulate;
  return std::clamp<std::uint64_t>(training_rows / step_rows / looks_of_an_epoch, 1,
                                   train::trainer_options{}.check_every);
}

}  // namespace

planned_session plan_session(const train_options& o, const training_data& data) {
  const gpu::device device = gpu::device::parse(o.device);
  auto training = open_rows(data.training, data, o.batch_rows, o);
  if (training.rows() == 0)
    throw penstock::io::error("there are no rows to train on", {.file = data.training.x.front().file.string(),
                                                                .dataset = data.training.x.front().dataset});
  auto testing = open_testing(o, data, o.batch_rows);
  check_second_inputs(data, training);
  if (testing) check_alike(data, training, *testing);
  train::trainer_options trainer = trainer_of(o, elements_of(training, "x"), data);
  std::optional<train::memory_plan> plan;
  std::optional<gpu::budget_error> refused;  // what was asked for
  smallest_budget smallest;
  std::size_t opened_rows = o.batch_rows;
  const auto plan_with = [&](const train::stage_options& stage, const gpu::budget& limits) {
    if (stage.rows != opened_rows) {
      training = open_rows(data.training, data, stage.rows, o);
      testing = open_testing(o, data, stage.rows);
      opened_rows = stage.rows;
    }
    return plan_run(device, limits, stage, data, training, testing);
  };
  const auto fits = [&](const train::stage_options& stage) {
    try {
      plan = plan_with(stage, o.budget);
      return true;
    } catch (const gpu::budget_error& e) {
      if (!refused) refused = e;
      smallest.note(stage, e);
      return false;
    }
  };
  /// With more of the device's memory the workspace is larger, too.
  const auto smallest_that_does = [&] {
    train::stage_options stage = smallest.stage();
    gpu::budget limits = smallest.bytes();
    for (int n = 0; n < 16; ++n) {
      stage.workspace_bytes = workspace_of(limits);
      try {
        plan_with(stage, limits);
        break;
      } catch (const gpu::budget_error& e) {
        limits = e.smallest();
      }
    }
    return limits;
  };
  const auto step = train::fit_step(device, trainer.stage, fits, o.floor_rows);
  if (!step)
    throw gpu::budget_error(fmt::format("batches of {} rows do not fit the budget, and nor do smaller ones with every "
                                        "lever",
                                        o.batch_rows),
                            refused->items(), refused->limits(), smallest_that_does());
  for (const std::string& reason : step->reasons) fmt::print("{}\n", reason);
  print_better_rows(o, trainer.stage, *step, fits);
  print_idle_levers(o, device, step->stage);
  print_padding(step->stage.rows, training.rows());
  if (o.plan_only) print_largest(step->stage, fits, training.rows());
  fits(step->stage);  // opens and plans what was chosen, after what was tried last
  if (o.calibrate) {
    training = open_calibrated(o, data, device, step->stage.rows, *plan);
    fits(step->stage);
  }
  trainer.stage = step->stage;
  trainer.accumulate *= step->accumulate;
  trainer.check_every = looks_every(trainer, training.rows());
  return {device, std::move(trainer), std::move(*plan), std::move(training), std::move(testing), data.testing_name};
}

}  // namespace examples
