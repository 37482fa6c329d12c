#include <penstock/train/memory_plan.hpp>

#include "batch_fields.hpp"

#include <algorithm>

namespace penstock::train {
namespace {

using gpu::memory_kind;

constexpr const char* test_readers = "train: reading of the test set";

/// What the budget leaves beside `taken`, of each kind.
gpu::budget left_of(const gpu::budget& limits, const gpu::ledger& taken) {
  gpu::budget left;
  for (const memory_kind kind : gpu::memory_kinds)
    left.of(kind) = limits.of(kind) - std::min(limits.of(kind), taken.total(kind));
  return left;
}

/// The test set's plan in the memory that the training pipeline has; the smallest there is where that is too little.
pipeline::pipeline_plan plan_testing(gpu::device d, const pipeline::opened& testing, const gpu::ledger& training,
                                     std::size_t host_bytes) {
  const gpu::budget room{training.total(memory_kind::device), training.total(memory_kind::pinned), host_bytes};
  try {
    return testing.plan(d, room);
  } catch (const gpu::budget_error&) {
    return testing.smallest_plan(d);
  }
}

/// The smallest budget in which model, training set and test set have room.
gpu::budget smallest_of(gpu::device d, const gpu::ledger& model, const pipeline::opened& training,
                        const pipeline::opened& testing) {
  const gpu::ledger train = training.smallest_plan(d).ledger, test = testing.smallest_plan(d).ledger;
  gpu::budget smallest;
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned})
    smallest.of(kind) = model.total(kind) + std::max(train.total(kind), test.total(kind));
  smallest.host_bytes = model.total(memory_kind::host) + train.total(memory_kind::host) + test.total(memory_kind::host);
  return smallest;
}

memory_plan plan_with(gpu::device d, const gpu::budget& limits, const gpu::ledger& model,
                      const pipeline::opened& training, const pipeline::opened* testing) {
  gpu::ledger own = model;
  if (testing != nullptr)
    own.add(memory_kind::host, test_readers, testing->smallest_plan(d).ledger.total(memory_kind::host));

  memory_plan run;
  run.training = training.plan(d, limits, own);
  run.pipelines = run.training.ledger;
  gpu::ledger stage_and_test = model;
  if (testing != nullptr) {
    gpu::ledger before = stage_and_test;
    before.add(run.pipelines);
    run.testing = plan_testing(d, *testing, run.pipelines, left_of(limits, before).host_bytes);
    const gpu::ledger& test = run.testing->ledger;
    stage_and_test.add(memory_kind::host, test_readers, test.total(memory_kind::host));
    for (const memory_kind kind : {memory_kind::device, memory_kind::pinned})
      if (test.total(kind) > run.pipelines.total(kind))
        run.pipelines.add(kind, "train: room for the test set", test.total(kind) - run.pipelines.total(kind),
                          "what its pipeline needs more");
  }
  run.ledger = std::move(stage_and_test);
  run.ledger.add(run.pipelines);
  if (!run.ledger.fits(limits))
    throw gpu::budget_error("training with its test set does not fit the budget", run.ledger, limits,
                            smallest_of(d, model, training, *testing));
  return run;
}

}  // namespace

memory_plan plan(gpu::device d, const gpu::budget& limits, const stage_options& stage, const pipeline::opened& training,
                 const pipeline::opened* testing) {
  memory_plan run = plan_with(d, limits, plan(d, stage), training, testing);
  check_batch_rows(run.training, stage);
  if (run.testing) check_batch_rows(*run.testing, stage);
  return run;
}

memory_plan plan(gpu::device d, const gpu::budget& limits, const model_functions& model,
                 const pipeline::opened& training, const pipeline::opened* testing) {
  return plan_with(d, limits, plan(d, model), training, testing);
}

planned_run build(const memory_plan& plan, pipeline::opened training, std::optional<pipeline::opened> testing,
                  fault_seam faults) {
  const auto memory = std::make_shared<gpu::memory>(plan.training.device, plan.ledger, std::move(faults));
  const auto part = [&](const gpu::ledger& items) {
    return std::make_shared<gpu::memory>(memory, plan.pipelines, items);
  };
  planned_run run{memory, std::move(training).build(plan.training, part(plan.training.ledger)), std::nullopt};
  if (testing && plan.testing) run.testing = std::move(*testing).build(*plan.testing, part(plan.testing->ledger));
  return run;
}

}  // namespace penstock::train
