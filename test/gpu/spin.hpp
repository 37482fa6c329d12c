#pragma once

#include <penstock/gpu/stream.hpp>

#include <cstdint>

namespace penstock::test {

/// Issues a kernel that spins until `*gate` is not 0, then writes `value` to `*mark`. `gate` is pinned host memory,
/// `mark` device or pinned memory. A gate that never opens ends it after half a minute, with nothing written: a failed
/// test, not a hung one.
void spin_until(gpu::stream_ref stream, const std::uint32_t* gate, std::uint32_t* mark, std::uint32_t value);

}  // namespace penstock::test
