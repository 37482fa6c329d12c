#include "bit_transpose.hpp"

#include "shuffle.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock::io {
namespace {

constexpr std::size_t strip_elements = 128;  // 16 groups of 8
constexpr std::size_t widest_strip_element = 16;

/// Transposes 8 x 8 bits: bit k of byte i and bit i of byte k change places (Hacker's Delight, 7-3).
std::uint64_t transpose_8x8(std::uint64_t x) noexcept {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
  return x ^ t ^ (t << 28);
}

/// One byte of 8 elements from its 8 bit planes, which lie `plane` bytes apart.
void gather_group(const std::byte* in, std::size_t plane, std::byte* out, std::size_t step) noexcept {
  std::uint64_t x = 0;
  for (std::size_t k = 0; k < 8; ++k) x |= static_cast<std::uint64_t>(in[k * plane]) << (8 * k);
  x = transpose_8x8(x);
  for (std::size_t i = 0; i < 8; ++i) out[i * step] = static_cast<std::byte>(x >> (8 * i));
}

#if defined(__SSE2__)
__m128i transpose_8x8(__m128i x) noexcept {
  const auto step = [&x](int shift, std::uint64_t mask) {
    const __m128i m = _mm_set1_epi64x(static_cast<long long>(mask));
    const __m128i t = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64(x, shift)), m);
    x = _mm_xor_si128(x, _mm_xor_si128(t, _mm_slli_epi64(t, shift)));
  };
  step(7, 0x00aa00aa00aa00aaull);
  step(14, 0x0000cccc0000ccccull);
  step(28, 0x00000000f0f0f0f0ull);
  return x;
}

/// One byte of 128 elements from its 8 bit planes.
void gather_strip(const std::byte* in, std::size_t plane, std::byte* out) noexcept {
  __m128i v[8], w[8];
  for (std::size_t k = 0; k < 8; ++k) v[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + k * plane));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t k = 0; k < 4; ++k) {
      w[2 * k] = _mm_unpacklo_epi8(v[k], v[k + 4]);
      w[2 * k + 1] = _mm_unpackhi_epi8(v[k], v[k + 4]);
    }
    std::copy_n(w, 8, v);
  }
  for (std::size_t k = 0; k < 8; ++k) _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + k, transpose_8x8(v[k]));
}
#else
void gather_strip(const std::byte* in, std::size_t plane, std::byte* out) noexcept {
  for (std::size_t g = 0; g < strip_elements / 8; ++g) gather_group(in + g, plane, out + 8 * g, 1);
}
#endif

}  // namespace

void untranspose_bits(const std::byte* in, std::byte* out, std::size_t elements, std::size_t element_bytes) noexcept {
  const std::size_t plane = elements / 8;
  std::size_t group = 0;
  if (element_bytes <= widest_strip_element) {
    std::array<std::byte, strip_elements * widest_strip_element> strip;
    for (; (group + 16) <= plane; group += 16) {
      for (std::size_t j = 0; j < element_bytes; ++j)
        gather_strip(in + 8 * j * plane + group, plane, strip.data() + j * strip_elements);
      unshuffle(strip.data(), out + 8 * group * element_bytes, strip_elements, element_bytes);
    }
  }
  for (; group < plane; ++group)
    for (std::size_t j = 0; j < element_bytes; ++j)
      gather_group(in + 8 * j * plane + group, plane, out + 8 * group * element_bytes + j, element_bytes);
}

}  // namespace penstock::io
