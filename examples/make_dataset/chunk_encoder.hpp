#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// One chunk as HDF5 stores it.
struct encoded_chunk {
  std::vector<std::byte> bytes;
  std::uint32_t skipped_filters = 0;  ///< bit n: filter n was not applied
};

/// HDF5's shuffle (where asked for: the bytes of all elements in order of their place in the element), then its deflate
/// (a zlib stream), on the caller's thread. What deflate would not make smaller is stored without it.
encoded_chunk encode_chunk(std::span<const std::byte> values, std::size_t element_bytes, bool shuffle, int level);

}  // namespace examples
