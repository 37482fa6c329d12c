#pragma once

#include <penstock/pipeline/batch.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/train/trainer.hpp>

#include <string>

namespace penstock::train {

// What a stage takes of a pipeline's batch, which must be of its type and size: std::invalid_argument says what is not.

/// A pipeline's batches are of as many rows as the stage's: rows are numbered by them.
void check_batch_rows(const pipeline::pipeline_plan& plan, const stage_options& stage);

/// The inputs in a field.
const void* inputs_of(const pipeline::batch& batch, const trainer_options& options, const std::string& field);
/// The weights of rows; null where all count 1. A test set may do without them.
const void* weights_of(const pipeline::batch& batch, const trainer_options& options, bool training);
/// All of it, with the batch's place in its epoch.
batch_rows rows_of(const pipeline::batch& batch, const trainer_options& options, bool training);

}  // namespace penstock::train
