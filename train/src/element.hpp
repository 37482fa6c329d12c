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

/// What values of S are computed and summed in, and what weights of a model in S are kept in.
template <class S>
struct arithmetic_of {
  using type = S;
};
template <>
struct arithmetic_of<bfloat16> {
  using type = float;
};
template <class S>
using arithmetic = typename arithmetic_of<S>::type;

}  // namespace penstock::train
