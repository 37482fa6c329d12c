#include "../failure.hpp"
#include "contexts.hpp"

#include <zstd_errors.h>

namespace penstock::io {
namespace {

/// Filter 32015: a Zstandard frame.
class zstd final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace& workspace) const override {
    const auto given =
        ZSTD_decompressDCtx(workspace.libraries().unzstd.native(), out.data(), out.size(), in.data(), in.size());
    if (ZSTD_isError(given)) {
      if (ZSTD_getErrorCode(given) == ZSTD_error_dstSize_tooSmall)
        throw not_decodable("its frame is longer than the chunk");
      throw damage("its Zstandard frame is damaged; copy or write the file again");
    }
    if (given != out.size()) throw damage("its Zstandard frame ends short; copy or write the file again");
    return out;
  }
};

}  // namespace

std::unique_ptr<decoder> make_zstd(const filter&) { return std::make_unique<zstd>(); }

}  // namespace penstock::io
