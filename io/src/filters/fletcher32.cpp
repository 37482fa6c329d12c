#include "../failure.hpp"
#include "decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace penstock::io {
namespace {

/// Adds the halves until 16 bits are left. Unlike a remainder, it gives 0 for a sum of zeros alone.
std::uint32_t fold(std::uint64_t sum) noexcept {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint32_t>(sum);
}

/// Fletcher's checksum over big-endian 16-bit words, as libhdf5 computes it; an odd last byte is the upper half of a
/// word.
std::uint32_t fletcher32_of(std::span<const std::byte> data) noexcept {
  std::uint64_t sum1 = 0, sum2 = 0;
  const auto* at = reinterpret_cast<const unsigned char*>(data.data());
  std::size_t words = data.size() / 2;
  while (words > 0) {
    // The second sum grows with the square of the number of words: 2^16 of them stay far below 2^64.
    const std::size_t some = std::min<std::size_t>(words, 1u << 16);
    words -= some;
    for (std::size_t i = 0; i < some; ++i, at += 2) sum2 += sum1 += static_cast<std::uint64_t>(at[0] << 8 | at[1]);
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  if (data.size() % 2) sum2 += sum1 += static_cast<std::uint64_t>(*at) << 8;
  return fold(sum2) << 16 | fold(sum1);
}

/// Filter 3: the chunk's checksum in four bytes after it, little-endian.
class fletcher32 final : public decoder {
 public:
  bool writes() const noexcept override { return false; }
  std::size_t stored_bytes(std::size_t bytes) const noexcept override { return bytes + 4; }
  std::size_t decoded_bytes(std::size_t stored) const noexcept override { return stored < 4 ? 0 : stored - 4; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte>,
                                    decode_workspace&) const override {
    if (in.size() < 4) throw damage("its checksum is missing; copy or write the file again");
    const auto data = in.first(in.size() - 4);
    const auto* c = reinterpret_cast<const unsigned char*>(in.data() + data.size());
    const auto stored = static_cast<std::uint32_t>(c[0]) | static_cast<std::uint32_t>(c[1]) << 8 |
                        static_cast<std::uint32_t>(c[2]) << 16 | static_cast<std::uint32_t>(c[3]) << 24;
    const auto sum = fletcher32_of(data);
    // Before 1.6.3 libhdf5 wrote the bytes of each half the other way round, on little-endian machines.
    const auto old = (sum & 0x00ff00ffu) << 8 | (sum >> 8 & 0x00ff00ffu);
    if (stored != sum && stored != old)
      throw damage(
          fmt::format("its fletcher32 checksum is {:08x}, but its bytes give {:08x}: they are damaged", stored, sum));
    return data;
  }
};

}  // namespace

std::unique_ptr<decoder> make_fletcher32(const filter&) { return std::make_unique<fletcher32>(); }

}  // namespace penstock::io
