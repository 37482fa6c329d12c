#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::io {

/// Whether the processor's block copy, which the kernel and memcpy use for all but short pieces, is slow from one place
/// to another: where the target lies 1 to 31 bytes further on in its page than the source does in its own. Measured on
/// an AMD EPYC (Zen 4): 2.5 to 6 times slower, 1 MiB from the page cache in 0.11 to 0.3 ms instead of 0.05.
inline bool copies_slowly(const void* to, std::uint64_t from) noexcept {
  const auto further = (reinterpret_cast<std::uintptr_t>(to) - from) % 4096;
  return further >= 1 && further < 32;
}

/// memcpy that knows of such places: short pieces are copied in registers.
inline void fast_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (!copies_slowly(to, reinterpret_cast<std::uintptr_t>(from))) {
    std::memcpy(to, from, bytes);
    return;
  }
  constexpr std::size_t piece = 1024;
  for (; bytes >= piece; to += piece, from += piece, bytes -= piece) std::memcpy(to, from, piece);
  std::memcpy(to, from, bytes);
}

}  // namespace penstock::io
