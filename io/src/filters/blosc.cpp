#include "../failure.hpp"
#include "decoder.hpp"

#include <blosc.h>

#include <array>

namespace penstock::io {
namespace {

/// Whether the buffer is of a later Blosc (2 writes versions from 3 on).
bool is_newer(std::span<const std::byte> in) {
  const auto version = std::to_integer<int>(in[0]);
  return version > BLOSC_VERSION_FORMAT && version < 16;
}

/// Whether this Blosc was built without the codec that the header names, in three bits of its flags.
bool lacks_codec(std::span<const std::byte> in) {
  constexpr std::array names{BLOSC_BLOSCLZ_COMPNAME, BLOSC_LZ4_COMPNAME, BLOSC_SNAPPY_COMPNAME, BLOSC_ZLIB_COMPNAME,
                             BLOSC_ZSTD_COMPNAME};
  const auto codec = std::to_integer<std::size_t>(in[2] >> 5);
  return codec < names.size() && blosc_compname_to_compcode(names[codec]) < 0;
}

/// Filter 32001: a Blosc buffer, whose header of 16 bytes says all. Blosc's own threads stay out of it.
class blosc final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace&) const override {
    std::size_t decoded = 0;
    if (in.size() < BLOSC_MIN_HEADER_LENGTH) throw not_decodable("its Blosc header is cut short");
    if (blosc_cbuffer_validate(in.data(), in.size(), &decoded) < 0)
      throw not_decodable("its Blosc header is not understood", is_newer(in));
    if (decoded > out.size()) throw not_decodable("its Blosc buffer is longer than the chunk");
    const int given = decoded == out.size() ? blosc_decompress_ctx(in.data(), out.data(), out.size(), 1) : 0;
    // A codec that this Blosc was built without gives an error too: libhdf5's plugin may know it.
    if (given < 0) throw not_decodable("its Blosc buffer is damaged, or of a codec that is not there", lacks_codec(in));
    if (static_cast<std::size_t>(given) != out.size())
      throw damage("its Blosc buffer ends short; copy or write the file again");
    return out;
  }
};

}  // namespace

std::unique_ptr<decoder> make_blosc(const filter&) { return std::make_unique<blosc>(); }

}  // namespace penstock::io
