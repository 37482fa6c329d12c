#include "../failure.hpp"
#include "big_endian.hpp"
#include "decoder.hpp"

#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock::io {
namespace {

[[noreturn]] void damaged() { throw damage("its LZ4 data are damaged; copy or write the file again"); }

/// Filter 32004: the number of bytes (8 bytes, big-endian), the bytes of a block (4 bytes); then per block its stored
/// size (4 bytes) and an LZ4 block, or the bytes themselves where that would not be shorter.
class lz4 final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace&) const override {
    if (in.size() < 12) damaged();
    const auto total = big_endian<8>(in.data());
    const std::size_t block = big_endian<4>(in.data() + 8);
    in = in.subspan(12);
    if (total > out.size()) throw not_decodable("its LZ4 data are longer than the chunk");
    if (total < out.size() || block == 0) damaged();
    for (auto left = out; !left.empty();) {
      const auto part = left.first(std::min(block, left.size()));
      if (in.size() < 4) damaged();
      const std::size_t stored = big_endian<4>(in.data());
      in = in.subspan(4);
      if (stored > in.size()) damaged();
      decode_block(in.first(stored), part);
      in = in.subspan(stored);
      left = left.subspan(part.size());
    }
    return out;
  }

 private:
  static void decode_block(std::span<const std::byte> stored, std::span<std::byte> part) {
    if (stored.size() == part.size()) {
      std::memcpy(part.data(), stored.data(), part.size());
      return;
    }
    constexpr std::size_t most = std::numeric_limits<int>::max();
    if (stored.size() > most || part.size() > most) damaged();
    const int given =
        LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(part.data()),
                            static_cast<int>(stored.size()), static_cast<int>(part.size()));
    if (given < 0 || static_cast<std::size_t>(given) != part.size()) damaged();
  }
};

}  // namespace

std::unique_ptr<decoder> make_lz4(const filter&) { return std::make_unique<lz4>(); }

}  // namespace penstock::io
