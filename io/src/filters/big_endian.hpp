#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::io {

/// The number in the `Bytes` bytes at `from`, most significant first.
template <std::size_t Bytes>
std::uint64_t big_endian(const std::byte* from) noexcept {
  std::uint64_t n = 0;
  for (std::size_t b = 0; b < Bytes; ++b) n = n << 8 | static_cast<std::uint64_t>(from[b]);
  return n;
}

}  // namespace penstock::io
