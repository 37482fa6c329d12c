#include "../failure.hpp"
#include "decoder.hpp"

#include <blosc.h>

namespace penstock::io {
namespace {

/// Filter 32001: a Blosc buffer, whose header of 16 bytes says all. Blosc's own threads stay out of it.
class blosc final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace&) const override {
    std::size_t decoded = 0;
    if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &decoded) < 0)
      throw not_decodable("its Blosc header is not understood");
    if (decoded > out.size()) throw not_decodable("its Blosc buffer is longer than the chunk");
    const int given = decoded == out.size() ? blosc_decompress_ctx(in.data(), out.data(), out.size(), 1) : 0;
    // A codec that this Blosc was built without gives an error too: libhdf5's plugin may know it.
    if (given < 0) throw not_decodable("its Blosc buffer is damaged, or of a codec that is not there");
    if (static_cast<std::size_t>(given) != out.size())
      throw failure("its Blosc buffer ends short; copy or write the file again");
    return out;
  }
};

}  // namespace

std::unique_ptr<decoder> make_blosc(const filter&) { return std::make_unique<blosc>(); }

}  // namespace penstock::io
