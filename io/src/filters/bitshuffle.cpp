#include "../failure.hpp"
#include "big_endian.hpp"
#include "bit_transpose.hpp"
#include "contexts.hpp"

#if PENSTOCK_HAS_LZ4
#include <lz4.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock::io {
namespace {

constexpr unsigned no_codec = 0, lz4_codec = 2, zstd_codec = 3;
constexpr std::size_t largest_block = std::size_t{256} << 10;  // others, which nobody writes, are left to libhdf5

[[noreturn]] void damaged() { throw damage("its bitshuffle data are damaged; copy or write the file again"); }

/// bitshuffle's choice: 8 KiB, but 128 elements or more, in eights.
std::size_t default_block(std::size_t element_bytes) {
  return std::max<std::size_t>(8192 / element_bytes / 8 * 8, 128);
}

/// Filter 32008: bits are transposed per block of elements, the last block has a multiple of 8; what is left stays as
/// it is. With a codec: the number of bytes (8 bytes, big-endian), the bytes of a block (4); then per block its stored
/// size (4).
class bitshuffle final : public decoder {
 public:
  bitshuffle(std::size_t element_bytes, std::size_t block, unsigned codec)
      : element_bytes_(element_bytes), block_(block ? block : default_block(element_bytes)), codec_(codec) {}

  bool compresses() const noexcept override { return codec_ != no_codec; }
  std::size_t extra_bytes(std::size_t decoded) const noexcept override {
    return compresses() ? std::min(decoded, largest_block) : 0;
  }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace& workspace) const override {
    std::size_t block = block_;
    if (compresses()) {
      if (in.size() < 12) damaged();
      const auto total = big_endian<8>(in.data());
      if (total > out.size()) throw not_decodable("its bitshuffle data are longer than the chunk");
      if (total < out.size()) damaged();
      block = big_endian<4>(in.data() + 8) / element_bytes_;
      in = in.subspan(12);
      if (block == 0 || block % 8 != 0) damaged();
      if (std::min(block * element_bytes_, out.size()) > workspace.extra().size())
        throw not_decodable("its bitshuffle blocks are very large", true);
    }
    std::size_t elements = out.size() / element_bytes_;
    auto left = out;
    while (elements >= 8) {
      const auto some = std::min(block, elements / 8 * 8);
      const auto bytes = some * element_bytes_;
      untranspose_bits(next_block(in, bytes, workspace), left.data(), some, element_bytes_);
      left = left.subspan(bytes);
      elements -= some;
    }
    if (in.size() < left.size()) damaged();
    if (!left.empty()) std::memcpy(left.data(), in.data(), left.size());
    return out;
  }

 private:
  /// The transposed bytes of the next block, which is cut off `in`.
  const std::byte* next_block(std::span<const std::byte>& in, std::size_t bytes, decode_workspace& workspace) const {
    std::size_t stored = bytes;
    if (compresses()) {
      if (in.size() < 4) damaged();
      stored = big_endian<4>(in.data());
      in = in.subspan(4);
    }
    if (stored > in.size()) damaged();
    const auto block = in.first(stored);
    in = in.subspan(stored);
    if (!compresses()) return block.data();
    const auto out = workspace.extra().first(bytes);
    if (decompress(block, out, workspace) != bytes) damaged();
    return out.data();
  }

  std::size_t decompress(std::span<const std::byte> in, std::span<std::byte> out, decode_workspace& workspace) const {
    (void)workspace;
    if (in.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) damaged();
#if PENSTOCK_HAS_LZ4
    if (codec_ == lz4_codec) {
      const int given =
          LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                              static_cast<int>(in.size()), static_cast<int>(out.size()));
      return given < 0 ? 0 : static_cast<std::size_t>(given);
    }
#endif
#if PENSTOCK_HAS_ZSTD
    if (codec_ == zstd_codec) {
      const auto given =
          ZSTD_decompressDCtx(workspace.libraries().unzstd.native(), out.data(), out.size(), in.data(), in.size());
      return ZSTD_isError(given) ? 0 : given;
    }
#endif
    return 0;
  }

  std::size_t element_bytes_, block_;
  unsigned codec_;
};

}  // namespace

std::unique_ptr<decoder> make_bitshuffle(const filter& f) {
  // cd_values: version (2), bytes of an element, elements of a block (0: its choice), codec.
  if (f.values.size() < 3 || f.values[2] == 0 || f.values[2] > 4096) return nullptr;
  const unsigned block = f.values.size() > 3 ? f.values[3] : 0, codec = f.values.size() > 4 ? f.values[4] : no_codec;
  if (block % 8 != 0) return nullptr;
  const bool known =
      codec == no_codec || (codec == lz4_codec && PENSTOCK_HAS_LZ4) || (codec == zstd_codec && PENSTOCK_HAS_ZSTD);
  if (!known) return nullptr;
  return std::make_unique<bitshuffle>(f.values[2], block, codec);
}

}  // namespace penstock::io
