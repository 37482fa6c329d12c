#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::benchmark {

/// One kernel or copy, as the device ran it.
struct traced_kernel {
  std::string name;
  std::uint64_t begin_ns = 0, end_ns = 0;
};

/// Has the device note every kernel from now on, which slows it a little.
void start_trace();
/// What was noted, in the order in which it began. The device must be idle.
std::vector<traced_kernel> end_trace();

}  // namespace penstock::benchmark
