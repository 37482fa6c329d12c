#include "shuffle.hpp"

#include "decoder.hpp"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock::io {
namespace {

#if defined(__SSE2__)
/// Puts 16 elements of `Bytes` bytes together at a time; returns how many elements it did. Each round interleaves the
/// first half of the registers with the second half, bytewise; after log2(Bytes) rounds each element's bytes are
/// neighbours.
template <std::size_t Bytes>
std::size_t unshuffle_16(const std::byte* in, std::byte* out, std::size_t elements) {
  std::size_t i = 0;
  for (; i + 16 <= elements; i += 16) {
    __m128i v[Bytes], w[Bytes];
    for (std::size_t b = 0; b < Bytes; ++b)
      v[b] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + b * elements + i));
    for (std::size_t round = Bytes; round > 1; round /= 2) {
      for (std::size_t b = 0; b < Bytes / 2; ++b) {
        w[2 * b] = _mm_unpacklo_epi8(v[b], v[b + Bytes / 2]);
        w[2 * b + 1] = _mm_unpackhi_epi8(v[b], v[b + Bytes / 2]);
      }
      std::copy_n(w, Bytes, v);
    }
    for (std::size_t b = 0; b < Bytes; ++b) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * Bytes) + b, v[b]);
  }
  return i;
}
#else
template <std::size_t>
std::size_t unshuffle_16(const std::byte*, std::byte*, std::size_t) {
  return 0;
}
#endif

/// Elements from `first` on, in strips that stay in the first-level cache.
void scatter(const std::byte* in, std::byte* out, std::size_t elements, std::size_t element_bytes, std::size_t first) {
  const std::size_t strip = std::max<std::size_t>(1, 16384 / element_bytes);
  for (; first < elements; first += strip) {
    const std::size_t end = std::min(elements, first + strip);
    for (std::size_t b = 0; b < element_bytes; ++b) {
      const std::byte* plane = in + b * elements;
      for (std::size_t i = first; i < end; ++i) out[i * element_bytes + b] = plane[i];
    }
  }
}

/// Filter 2. Bytes past the last whole element stay as they are.
class shuffle final : public decoder {
 public:
  explicit shuffle(std::size_t element_bytes) : element_bytes_(element_bytes) {}
  bool writes() const noexcept override { return element_bytes_ > 1; }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace&) const override {
    if (!writes()) return in;
    const std::size_t elements = in.size() / element_bytes_;
    unshuffle(in.data(), out.data(), elements, element_bytes_);
    const std::size_t whole = elements * element_bytes_;
    if (whole < in.size()) std::memcpy(out.data() + whole, in.data() + whole, in.size() - whole);
    return out;
  }

 private:
  std::size_t element_bytes_;
};

}  // namespace

void unshuffle(const std::byte* in, std::byte* out, std::size_t elements, std::size_t element_bytes) noexcept {
  std::size_t done = 0;
  switch (element_bytes) {
    case 2: done = unshuffle_16<2>(in, out, elements); break;
    case 4: done = unshuffle_16<4>(in, out, elements); break;
    case 8: done = unshuffle_16<8>(in, out, elements); break;
    default: break;
  }
  scatter(in, out, elements, element_bytes, done);
}

std::unique_ptr<decoder> make_shuffle(const filter& f) {
  if (f.values.empty() || f.values[0] == 0) return nullptr;
  return std::make_unique<shuffle>(f.values[0]);
}

}  // namespace penstock::io
