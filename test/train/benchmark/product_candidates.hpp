#pragma once

#include <penstock/train/stage.hpp>

#include <cstddef>

namespace penstock::benchmark {

/// Prints what cuBLASLt offers for the products of a dense layer at so many rows, forward and backward, with and
/// without epilogues, in the order of its own preference, and the time of each.
void print_candidates(train::precision arithmetic, std::size_t rows, std::size_t inputs, std::size_t outputs,
                      std::size_t workspace_bytes);

}  // namespace penstock::benchmark
