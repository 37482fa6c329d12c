#include "session.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace examples {
namespace {

namespace gpu = penstock::gpu;
namespace train = penstock::train;
using namespace penstock::literals;

constexpr std::size_t least_batch_rows = 8;

std::size_t elements_of(const penstock::pipeline::field_shape& field) {
  std::size_t elements = 1;
  for (const std::uint64_t extent : field.row_shape) elements *= extent;
  return elements;
}

train::trainer_options trainer_of(const train_options& o, std::size_t inputs, std::size_t outputs) {
  // Before the aggregate: GCC 12 destroys what it has made of one twice where an initialiser throws (its bug 66139).
  const train::optimizer_options optimizer = optimizer_of(o);
  const train::loss_options loss = loss_of(o);
  const auto offloads = [&](const char* what) {
    return std::find(o.offload.begin(), o.offload.end(), what) != o.offload.end();
  };
  const bool of_classes = train::classes_of(loss, outputs) != 0;
  train::stage_options stage{.model = {.inputs = inputs,
                                       .hidden = o.hidden,
                                       .outputs = outputs,
                                       .activation = train::parse_activation(o.activation),
                                       .layer_norm = o.layer_norm,
                                       .dropout = o.dropout},
                             .loss = loss,
                             .targets = of_classes ? train::target::label : train::target::values,
                             .optimizer = optimizer,
                             .rows = o.batch_rows,
                             .precision = train::parse_precision(o.precision),
                             .recompute_layers = o.recompute,
                             .offload = {.optimizer = offloads("optimizer"), .activations = offloads("activations")},
                             .clip_norm = o.clip_norm,
                             .seed = o.order.seed,
                             .non_finite = o.skip_non_finite ? train::non_finite::skip : train::non_finite::fail,
                             .workspace_bytes = std::clamp(o.budget.device_bytes / 16, 256_KiB, 32_MiB),
                             .threads = o.threads};
  if (o.hidden == std::vector<std::size_t>{0}) stage.model.hidden.clear();
  const train::schedule schedule{
      .form = train::parse_schedule(o.schedule), .warmup_steps = o.warmup_steps, .epochs = o.epochs};
  return {.stage = stage, .accumulate = o.accumulate, .schedule = schedule};
}

}  // namespace

planned_session plan_session(const train_options& o, const training_data& data) {
  const gpu::device device = gpu::device::parse(o.device);
  auto training = open_rows(data.training, o.batch_rows, o);
  if (training.rows() == 0)
    throw penstock::io::error("there are no rows to train on", {.file = data.training.x.front().file.string(),
                                                                .dataset = data.training.x.front().dataset});
  std::optional<penstock::pipeline::opened> testing;
  if (data.testing) testing = open_rows(*data.testing, o.batch_rows, o);
  const std::size_t inputs = elements_of(training.fields().front());
  if (testing && elements_of(testing->fields().front()) != inputs)
    throw penstock::io::error(
        fmt::format("a row of the test set has {} values, and one of the training set {}",
                    elements_of(testing->fields().front()), inputs),
        {.file = data.testing->x.front().file.string(), .dataset = data.testing->x.front().dataset});
  train::trainer_options trainer = trainer_of(o, inputs, data.outputs);
  std::optional<gpu::budget_error> refused;  // of the batch that was asked for
  for (;;) {
    try {
      auto plan = train::plan(device, o.budget, trainer.stage, training, testing ? &*testing : nullptr);
      if (trainer.accumulate != o.accumulate)
        fmt::print("batches of {} rows do not fit the budget: steps are made of {} batches of {} rows\n", o.batch_rows,
                   trainer.accumulate, trainer.stage.rows);
      return {device, std::move(trainer), std::move(plan), std::move(training), std::move(testing)};
    } catch (const gpu::budget_error& e) {
      if (!refused) refused = e;
      if (trainer.stage.rows % 2 != 0 || trainer.stage.rows <= least_batch_rows)
        throw gpu::budget_error(
            fmt::format("batches of {} rows do not fit the budget, and nor do {} of {} for one step", o.batch_rows,
                        trainer.accumulate / o.accumulate, trainer.stage.rows),
            refused->items(), refused->limits(), e.smallest());
    }
    trainer.stage.rows /= 2;
    trainer.accumulate *= 2;
    training = open_rows(data.training, trainer.stage.rows, o);
    if (data.testing) testing = open_rows(*data.testing, trainer.stage.rows, o);
  }
}

}  // namespace examples
