#pragma once

#include <penstock/gpu/stream.hpp>

#include <torch/types.h>

#include <cstddef>
#include <optional>

namespace examples {

/// Where torch works for a device of Penstock's. Throws std::runtime_error for a GPU where this libtorch knows none.
torch::Device torch_device(penstock::gpu::device device);

/// Torch's current stream of the device, which Penstock's batches are then for; none on the host.
std::optional<penstock::gpu::stream_ref> current_stream(penstock::gpu::device device);

/// From now on torch's caching allocator holds at most so many bytes of the GPU: a request beyond is an error, and not
/// everybody's memory. On the host torch has no such limit.
void cap_torch_memory(penstock::gpu::device device, std::size_t bytes);

/// The most bytes that torch's caching allocator has held of the GPU; 0 on the host.
std::size_t most_torch_bytes(penstock::gpu::device device);

}  // namespace examples
