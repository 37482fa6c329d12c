#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/train/progress.hpp>

#include <cstdint>

namespace penstock::train {

/// What rows of progress::bad_input are compared by: their numbers, and of one row the first input comes first. So
/// step_state has them, of which the smallest one stays. Of a row, not of progress::no_row.
PENSTOCK_HOST_DEVICE inline std::uint64_t order_of_input(std::uint64_t row) {
  return (row & ~progress::of_second_input) << 1 | ((row & progress::of_second_input) != 0 ? 1 : 0);
}

/// progress::bad_input as step_state has it, and back; progress::no_row is the same in both, behind all others.
inline std::uint64_t to_order_of_input(std::uint64_t bad_input) noexcept {
  return bad_input == progress::no_row ? bad_input : order_of_input(bad_input);
}
inline std::uint64_t from_order_of_input(std::uint64_t order) noexcept {
  return order == progress::no_row ? order : order >> 1 | ((order & 1) != 0 ? progress::of_second_input : 0);
}

}  // namespace penstock::train
