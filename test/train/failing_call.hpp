#pragma once

#include <penstock/fault.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::test {

/// Of CUDA calls, or what the host does in their place, the next but `left` fails; below 0: none does.
struct failing_call final : fault_injector {
  std::atomic<int> left{-1};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    return {.error = site == fault_site::cuda_call && left-- == 0 ? 719 : 0};  // cudaErrorLaunchFailure
  }
};

}  // namespace penstock::test
