#pragma once

#include <penstock/gpu/stream.hpp>

#include <cstddef>
#include <cstdint>

namespace examples {

/// Rows one after another, in the stream's memory.
struct row_bytes_view {
  const std::byte* data = nullptr;
  std::size_t rows = 0;
  std::size_t row_bytes = 0;
};

/// Adds the rows' checksum to `*total`, which lies in the stream's memory, in the order of `stream`; does not block.
/// The checksum of a row is the sum of its 32-bit words (the last one filled up with zeros), and that of rows the sum
/// of theirs, modulo 2^64: whatever the order and the batches, the same rows give the same sum. Reads every byte once.
void add_checksum(penstock::gpu::stream_ref stream, const row_bytes_view& rows, std::uint64_t* total);

/// The same of rows in the host's memory, on the caller's thread alone.
std::uint64_t checksum_here(const row_bytes_view& rows) noexcept;

}  // namespace examples
