#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/train/progress.hpp>

#include <cstdint>

namespace penstock::train {

/// What rows of progress::bad_input are compared by: their numbers, and of one row the first input comes first.
/// progress::no_row comes behind all of them.
PENSTOCK_HOST_DEVICE inline std::uint64_t order_of_input(std::uint64_t row) {
  return (row & ~progress::of_second_input) << 1 | ((row & progress::of_second_input) != 0 ? 1 : 0);
}

}  // namespace penstock::train
