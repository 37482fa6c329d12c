#include "../failure.hpp"
#include "contexts.hpp"

#include <fmt/format.h>

#include <optional>

namespace penstock::io {
namespace {

/// Filter 1: a zlib stream (RFC 1950).
class deflate final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace& workspace) const override {
    const auto given = inflate(in, out, workspace);
    // libhdf5 takes the chunk from the front of a longer stream; libdeflate cannot stop there.
    if (!given) throw not_decodable("its deflate stream is longer than the chunk");
    if (*given != out.size())
      throw damage(fmt::format("its deflate stream ends after {} of {} bytes; copy or write the file again", *given,
                               out.size()));
    return out;
  }

  std::optional<std::size_t> decode_at_most(std::span<const std::byte> in, std::span<std::byte> out,
                                            decode_workspace& workspace) const override {
    return inflate(in, out, workspace);
  }

 private:
  /// Nothing where there are more bytes than `out` has.
  static std::optional<std::size_t> inflate(std::span<const std::byte> in, std::span<std::byte> out,
                                            decode_workspace& workspace) {
    std::size_t taken = 0, given = 0;
    const auto status = libdeflate_zlib_decompress_ex(workspace.libraries().inflater.native(), in.data(), in.size(),
                                                      out.data(), out.size(), &taken, &given);
    if (status == LIBDEFLATE_INSUFFICIENT_SPACE) return std::nullopt;
    if (status != LIBDEFLATE_SUCCESS) throw damage("its deflate stream is damaged; copy or write the file again");
    return given;
  }
};

}  // namespace

std::unique_ptr<decoder> make_deflate(const filter&) { return std::make_unique<deflate>(); }

}  // namespace penstock::io
