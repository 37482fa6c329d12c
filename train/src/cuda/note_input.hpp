#pragma once

#include "../input_fault.hpp"

#include <cstdint>

namespace penstock::train::cuda {

/// Notes a row at fault in progress::bad_input: the first one stays, whichever thread comes first.
__device__ inline void note_input(std::uint64_t& where, std::uint64_t row) {
  auto* const first = reinterpret_cast<unsigned long long*>(&where);
  unsigned long long seen = *first;
  while (order_of_input(row) < order_of_input(seen)) {
    const unsigned long long found = atomicCAS(first, seen, static_cast<unsigned long long>(row));
    if (found == seen) return;
    seen = found;
  }
}

}  // namespace penstock::train::cuda
