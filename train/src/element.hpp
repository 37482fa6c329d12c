#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cstdint>
#include <cstring>

namespace penstock::train {

/// A bfloat16 that is computed with as a float32: rounded to the nearest, ties to even, wherever it is kept.
class bfloat16 {
 public:
  bfloat16() = default;
  PENSTOCK_HOST_DEVICE explicit bfloat16(float x) noexcept {
    std::uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    bits_ = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  PENSTOCK_HOST_DEVICE operator float() const noexcept {
    const std::uint32_t bits = static_cast<std::uint32_t>(bits_) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }

 private:
  std::uint16_t bits_;
};

/// An IEEE 754 binary16 that is computed with as a float32: rounded to the nearest, ties to even, wherever it is kept.
class float16 {
 public:
  float16() = default;
  PENSTOCK_HOST_DEVICE explicit float16(float x) noexcept {
    const std::uint32_t all = bits_of(x), sign = all & 0x80000000u, size = all ^ sign;
    std::uint32_t half;
    if (size >= 0x47800000u)  // 65536 and above, infinity, NaN
      half = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    else if (size < 0x38800000u)  // below 2^-14: adding 0.5 rounds to the last place of a subnormal
      half = bits_of(value_of(size) + 0.5f) - bits_of(0.5f);
    else
      half = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13;
    bits_ = static_cast<std::uint16_t>(half | (sign >> 16));
  }
  PENSTOCK_HOST_DEVICE operator float() const noexcept {
    const std::uint32_t sign = (bits_ & 0x8000u) << 16, size = bits_ & 0x7fffu;
    std::uint32_t wide = (size << 13) + (112u << 23);
    if (size >= 0x7c00u)
      wide += 112u << 23;
    else if (size < 0x400u)  // zero and subnormals: let a subtraction normalise them
      wide = bits_of(value_of(wide + (1u << 23)) - value_of(113u << 23));
    return value_of(wide | sign);
  }

 private:
  PENSTOCK_HOST_DEVICE static std::uint32_t bits_of(float x) noexcept {
    std::uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  PENSTOCK_HOST_DEVICE static float value_of(std::uint32_t bits) noexcept {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }

  std::uint16_t bits_;
};

/// What values of S are computed and summed in, and what weights of a model in S are kept in.
template <class S>
struct arithmetic_of {
  using type = S;
};
template <>
struct arithmetic_of<bfloat16> {
  using type = float;
};
template <>
struct arithmetic_of<float16> {
  using type = float;
};
template <class S>
using arithmetic = typename arithmetic_of<S>::type;

}  // namespace penstock::train
