#include "../failure.hpp"
#include "decoder.hpp"

#include <cstring>

namespace penstock::io {
namespace {

[[noreturn]] void damaged() { throw damage("its lzf data are damaged; copy or write the file again"); }

/// Filter 32000: LibLZF's stream, without framing. A control byte below 32 starts a run of literals; others name bytes
/// that were put out before: three bits of length, thirteen of distance.
class lzf final : public decoder {
 public:
  bool compresses() const noexcept override { return true; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace&) const override {
    const std::byte *from = in.data(), *const from_end = from + in.size();
    std::byte *to = out.data(), *const to_end = to + out.size();
    while (from < from_end) {
      const auto control = static_cast<unsigned>(*from++);
      if (control < 32) {
        const std::size_t run = control + 1;
        if (run > static_cast<std::size_t>(from_end - from) || run > static_cast<std::size_t>(to_end - to)) damaged();
        std::memcpy(to, from, run);
        from += run;
        to += run;
        continue;
      }
      std::size_t length = control >> 5;
      if (length == 7) {
        if (from == from_end) damaged();
        length += static_cast<std::size_t>(*from++);
      }
      length += 2;
      if (from == from_end) damaged();
      const std::size_t distance = ((control & 31u) << 8 | static_cast<std::size_t>(*from++)) + 1;
      if (distance > static_cast<std::size_t>(to - out.data()) || length > static_cast<std::size_t>(to_end - to))
        damaged();
      copy_back(to, distance, length);
      to += length;
    }
    if (to != to_end) damaged();
    return out;
  }

 private:
  /// Source and target may overlap: then the bytes repeat.
  static void copy_back(std::byte* to, std::size_t distance, std::size_t length) {
    if (distance >= length) {
      std::memcpy(to, to - distance, length);
    } else if (distance == 1) {
      std::memset(to, static_cast<int>(to[-1]), length);
    } else {
      const std::byte* from = to - distance;
      for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
    }
  }
};

}  // namespace

std::unique_ptr<decoder> make_lzf(const filter&) { return std::make_unique<lzf>(); }

}  // namespace penstock::io
