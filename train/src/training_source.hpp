#pragma once

#include <penstock/pipeline/pipeline.hpp>
#include <penstock/train/trainer.hpp>

#include <string>

namespace penstock::train {

/// What the order of rows, and so the bits of a run, depend on, in words: the first and the last file (folders may
/// change) and dataset of each field, and the order; with fingerprints of every file, dataset and part of it between,
/// of the rows that take part, and of what they are drawn by. Not the rows of batches. `all_fields`: of every field of
/// the source; else of inputs, targets and weights of rows.
std::string source_of(const pipeline::pipeline& data, const trainer_options& options, bool all_fields);

}  // namespace penstock::train
