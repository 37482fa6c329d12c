#pragma once

#include "../input_fault.hpp"

#include <cstdint>

namespace penstock::train::cuda {

/// Notes a row at fault in step_state's bad_input: the first one stays, whichever thread comes first.
__device__ inline void note_input(std::uint64_t& where, std::uint64_t row) {
  atomicMin(reinterpret_cast<unsigned long long*>(&where), static_cast<unsigned long long>(order_of_input(row)));
}

}  // namespace penstock::train::cuda
