#include "chunk_encoder.hpp"

#include <zlib.h>

#include <stdexcept>

namespace examples {
namespace {

std::vector<std::byte> shuffled(std::span<const std::byte> values, std::size_t element_bytes) {
  std::vector<std::byte> planes(values.size());
  const std::size_t elements = values.size() / element_bytes;
  for (std::size_t place = 0; place < element_bytes; ++place)
    for (std::size_t n = 0; n < elements; ++n) planes[place * elements + n] = values[n * element_bytes + place];
  return planes;
}

}  // namespace

encoded_chunk encode_chunk(std::span<const std::byte> values, std::size_t element_bytes, bool shuffle, int level) {
  std::vector<std::byte> planes;
  if (shuffle) {
    planes = shuffled(values, element_bytes);
    values = planes;
  }
  uLongf bytes = compressBound(values.size());
  encoded_chunk chunk{std::vector<std::byte>(bytes)};
  if (compress2(reinterpret_cast<Bytef*>(chunk.bytes.data()), &bytes, reinterpret_cast<const Bytef*>(values.data()),
                values.size(), level) != Z_OK)
    throw std::runtime_error("zlib could not compress a chunk; is there enough memory?");
  if (bytes >= values.size()) return {{values.begin(), values.end()}, shuffle ? 2U : 1U};
  chunk.bytes.resize(bytes);
  return chunk;
}

}  // namespace examples
