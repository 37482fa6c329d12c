#pragma once

#include <cstddef>

namespace penstock::test {

/// What Penstock holds of the CUDA runtime. Counted where the linker hands the test program's own calls to a counter
/// first (`--wrap`): the driver's figures are those of all processes, and of no pinned memory.
struct cuda_resources {
  std::size_t device_bytes = 0;
  std::size_t pinned_bytes = 0;
  std::size_t objects = 0;  ///< streams and events

  friend bool operator==(const cuda_resources&, const cuda_resources&) = default;
};

/// All 0 in a build without CUDA.
cuda_resources cuda_held_now();

}  // namespace penstock::test
