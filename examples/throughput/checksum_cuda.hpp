#pragma once

#include "checksum.hpp"

namespace examples {

/// add_checksum() on a CUDA device: one kernel. Without CUDA in the build it throws.
void add_checksum_on_cuda(penstock::gpu::stream_ref stream, const row_bytes_view& rows, std::uint64_t* total);

}  // namespace examples
