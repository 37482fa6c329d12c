#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::train::cuda {

/// Neighbours in memory, aligned so that one instruction loads or stores them (up to 16 bytes).
template <class V, unsigned Width>
struct alignas(sizeof(V) * Width) values {
  V at[Width];
};

inline bool is_aligned(const void* address, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace penstock::train::cuda
