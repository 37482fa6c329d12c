#pragma once

#include <cstddef>
#include <vector>

namespace penstock::gpu::cuda {

/// Free bytes of devices 0 to `devices` - 1, 0 for one that does not answer. The runtime can only ask by making a
/// context, of hundreds of megabytes, on each of them for the rest of the process; the driver lends the context and
/// takes it back.
std::vector<std::size_t> free_memory_of_devices(int devices);

}  // namespace penstock::gpu::cuda
