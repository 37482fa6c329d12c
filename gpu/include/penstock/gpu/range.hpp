#pragma once

#include <penstock/config.hpp>

namespace penstock::gpu {

/// A named span of the calling thread's work in NVIDIA's profilers: an NVTX range of the domain "penstock", from
/// construction to destruction. Without a profiler it costs a comparison; in a build without CUDA it is nothing.
class range {
 public:
  explicit range(const char* name) noexcept {
    if constexpr (PENSTOCK_HAS_CUDA != 0) push(name);
  }
  ~range() {
    if constexpr (PENSTOCK_HAS_CUDA != 0) pop();
  }
  range(const range&) = delete;
  range& operator=(const range&) = delete;

 private:
  static void push(const char* name) noexcept;
  static void pop() noexcept;
};

}  // namespace penstock::gpu
