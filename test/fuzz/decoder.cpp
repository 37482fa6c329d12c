// libFuzzer target of one decoder (PENSTOCK_FUZZ_FILTER, an HDF5 filter number). The first bytes of an input choose the
// filter's parameters and the chunk's size; the rest is what the file holds.

#include "failure.hpp"
#include "filters/filter_chain.hpp"
#include "filters/registry.hpp"
#include "guarded_bytes.hpp"

namespace io = penstock::io;

namespace {

constexpr std::size_t header_bytes = 6;
constexpr std::size_t largest_chunk = 1 << 14;

std::vector<unsigned> parameters(const std::uint8_t* header) {
  const unsigned a = header[0], b = header[1], c = header[2], d = header[3];
  switch (PENSTOCK_FUZZ_FILTER) {
    case 2: return {a % 20};                                   // shuffle: bytes of an element
    case 4: return {a | (b & 1) << 8, c % 70, d % 70, 1 + b};  // szip: options, block, bits, scanline
    case 32008: return {0, 2, a % 20, b * 8u, c % 4};          // bitshuffle: version, element, block, codec
    default: return {a, b, c, d};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < header_bytes) return -1;
  const io::filter filter{PENSTOCK_FUZZ_FILTER, "fuzzed", parameters(data)};
  const std::size_t chunk_bytes = 1 + ((std::size_t{data[4]} << 8 | data[5]) % largest_chunk);
  const std::size_t stored_bytes = size - header_bytes;
  if (!io::why_not_decodable({filter}, chunk_bytes).empty()) return -1;
  const io::filter_chain chain({filter}, chunk_bytes);
  io::decode_workspace workspace(chain.workspace(stored_bytes));
  const penstock::fuzz::guarded_bytes stored(data + header_bytes, stored_bytes), chunk(chunk_bytes);
  try {
    chain.decode(stored.span(), 0, chunk.span(), workspace);
  } catch (const io::failure&) {
  } catch (const io::not_decodable&) {
  }
  return 0;
}
