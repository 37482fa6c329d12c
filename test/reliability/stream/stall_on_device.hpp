#pragma once

#include <penstock/gpu/stream.hpp>

#include <chrono>

namespace penstock::test {

/// Issues a kernel that keeps `stream` busy for so long; the host does not wait. Nothing where the stream is the
/// host's.
void stall_on_device(gpu::stream_ref stream, std::chrono::microseconds lasts);

}  // namespace penstock::test
