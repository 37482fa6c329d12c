#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// What a filter reads of a chunk's stored bytes, and what it makes of them.
struct packed_sizes {
  std::uint64_t reads = 0;  ///< bytes; as many there must be
  std::uint64_t makes = 0;  ///< bytes
};

/// Whether the filters 5 and 6 are to pack values, by their parameters; else they leave every byte as it is.
bool nbit_packs(std::span<const unsigned> parameters) noexcept;
bool scaleoffset_packs(std::span<const unsigned> parameters) noexcept;

/// Of filter 5, which packs, by its parameters alone. Throws damage on those with which libhdf5 (1.10.8) would divide
/// by zero, or read or write past its memory: it does not check them, nor how much is stored. Their order is that of
/// H5Znbit.c.
packed_sizes nbit_sizes(std::span<const unsigned> parameters);

/// The same of filter 6, by its parameters and what the stored bytes begin with: the bits of each value, 4 bytes; the
/// size of the least value, a byte; the least value. What is packed follows after 21 bytes (H5Zscaleoffset.c). Where
/// less than scaleoffset_front is known, it makes nothing.
packed_sizes scaleoffset_sizes(std::span<const unsigned> parameters, std::span<const std::byte> front);

/// Bytes of the front that scaleoffset_sizes() looks at.
inline constexpr std::size_t scaleoffset_front = 4;

}  // namespace penstock::io
