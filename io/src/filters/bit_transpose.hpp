#pragma once

#include <cstddef>

namespace penstock::io {

/// Undoes bitshuffle's transposition of one block: `elements` (a multiple of 8) of `element_bytes` bytes. Bit k of byte
/// j of element i is bit i % 8 of byte (8 * j + k) * elements / 8 + i / 8 of `in`.
void untranspose_bits(const std::byte* in, std::byte* out, std::size_t elements, std::size_t element_bytes) noexcept;

}  // namespace penstock::io
