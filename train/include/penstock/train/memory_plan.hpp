#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/pipeline/pipeline.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/train/own_model.hpp>
#include <penstock/train/stage.hpp>

#include <memory>
#include <optional>

namespace penstock::train {

/// The memory of a run: a stage, the pipeline that feeds it, and maybe one for a test set. The two pipelines never
/// stream at once and take turns in the same device and pinned memory.
struct memory_plan {
  pipeline::pipeline_plan training;
  std::optional<pipeline::pipeline_plan> testing;
  gpu::ledger pipelines;  ///< the part of `ledger` that the pipelines take turns in
  gpu::ledger ledger;     ///< everything
};

/// Plans a run within one budget. Throws gpu::budget_error with the stage, the smallest pipeline and the smallest
/// budget that would do where it does not fit, std::invalid_argument where a pipeline's batches are not of stage.rows
/// rows, and gpu::error for a precision that the device lacks: in tf32, bf16 and fp16 the driver is asked.
memory_plan plan(gpu::device d, const gpu::budget& limits, const stage_options& stage, const pipeline::opened& training,
                 const pipeline::opened* testing = nullptr);
/// The same for a model of yours: see own_model.hpp.
memory_plan plan(gpu::device d, const gpu::budget& limits, const model_functions& model,
                 const pipeline::opened& training, const pipeline::opened* testing = nullptr);

/// What a plan describes, allocated.
struct planned_run {
  std::shared_ptr<gpu::memory> memory;
  pipeline::pipeline training;
  std::optional<pipeline::pipeline> testing;
};

/// Allocates a plan's memory and builds its pipelines, which are used up. `faults` is asked by the allocations.
planned_run build(const memory_plan& plan, pipeline::opened training, std::optional<pipeline::opened> testing = {},
                  fault_seam faults = {});

}  // namespace penstock::train
