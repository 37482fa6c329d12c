#pragma once

#include <penstock/pipeline/pipeline.hpp>
#include <penstock/train/trainer.hpp>

#include <string>

namespace penstock::train {

/// What the order of rows, and so the bits of a run, depend on, in words: the files (their folder may change), the
/// datasets and the order. `all_fields`: of every field of the source; else of inputs, targets and
/// weights of rows.
std::string source_of(const pipeline::pipeline& data, const trainer_options& options, bool all_fields);

}  // namespace penstock::train
