#pragma once

#include <penstock/gpu/permutation.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

/// Element conversions, the same bits from a host compiler and from nvcc: the 16-bit floats are done on bits (the
/// method of Fabian Giesen, "float_to_half_fast3_rtne" and "half_to_float"), floats to integers by explicit comparison.
namespace penstock::gpu::convert {

template <class To, class From>
PENSTOCK_HOST_DEVICE inline To bits_as(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof(To));
  return to;
}

PENSTOCK_HOST_DEVICE inline std::uint8_t reversed(std::uint8_t x) noexcept { return x; }
PENSTOCK_HOST_DEVICE inline std::uint16_t reversed(std::uint16_t x) noexcept {
  return static_cast<std::uint16_t>((x << 8) | (x >> 8));
}
PENSTOCK_HOST_DEVICE inline std::uint32_t reversed(std::uint32_t x) noexcept {
  return (x << 24) | ((x << 8) & 0xff0000U) | ((x >> 8) & 0xff00U) | (x >> 24);
}
PENSTOCK_HOST_DEVICE inline std::uint64_t reversed(std::uint64_t x) noexcept {
  return (std::uint64_t{reversed(static_cast<std::uint32_t>(x))} << 32) | reversed(static_cast<std::uint32_t>(x >> 32));
}

template <std::size_t Bytes>
struct unsigned_of;
template <>
struct unsigned_of<1> {
  using type = std::uint8_t;
};
template <>
struct unsigned_of<2> {
  using type = std::uint16_t;
};
template <>
struct unsigned_of<4> {
  using type = std::uint32_t;
};
template <>
struct unsigned_of<8> {
  using type = std::uint64_t;
};

/// The value with its bytes in the other order.
template <class T>
PENSTOCK_HOST_DEVICE inline T byte_swapped(T x) noexcept {
  return bits_as<T>(reversed(bits_as<typename unsigned_of<sizeof(T)>::type>(x)));
}

/// Exact.
PENSTOCK_HOST_DEVICE inline float widened(float16_t x) noexcept {
  const std::uint32_t exponent_mask = 0x7c00U << 13;
  std::uint32_t bits = (x.bits & 0x7fffU) << 13;
  const std::uint32_t exponent = bits & exponent_mask;
  bits += (127U - 15U) << 23;
  if (exponent == exponent_mask) {  // infinite or NaN
    bits += (128U - 16U) << 23;
  } else if (exponent == 0) {  // zero or subnormal: let the subtraction normalise it
    bits += 1U << 23;
    bits = bits_as<std::uint32_t>(bits_as<float>(bits) - bits_as<float>(113U << 23));
  }
  return bits_as<float>(bits | ((x.bits & 0x8000U) << 16));
}

/// Exact.
PENSTOCK_HOST_DEVICE inline float widened(bfloat16_t x) noexcept {
  return bits_as<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// To the nearest, ties to even.
PENSTOCK_HOST_DEVICE inline float16_t to_float16(float x) noexcept {
  std::uint32_t bits = bits_as<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000U;
  bits ^= sign;
  std::uint32_t half;
  if (bits >= ((127U + 16U) << 23)) {
    half = bits > 0x7f800000U ? 0x7e00U : 0x7c00U;
  } else if (bits < (113U << 23)) {  // the sum with 0.5 rounds to a subnormal's last place
    half = bits_as<std::uint32_t>(bits_as<float>(bits) + 0.5F) - (126U << 23);
  } else {
    const std::uint32_t odd = (bits >> 13) & 1U;
    half = (bits - ((127U - 15U) << 23) + 0xfffU + odd) >> 13;
  }
  return {static_cast<std::uint16_t>(half | (sign >> 16))};
}

/// To the nearest, ties to even.
PENSTOCK_HOST_DEVICE inline bfloat16_t to_bfloat16(float x) noexcept {
  const std::uint32_t bits = bits_as<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

/// A float32 from which a 16-bit float is rounded as if from `x` itself: toward zero, and odd where that is not exact
/// (Boldo and Melquiond, "When double rounding is odd", 2005).
PENSTOCK_HOST_DEVICE inline float odd_float(double x) noexcept {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  std::uint32_t bits = bits_as<std::uint32_t>(nearest);
  if ((x < 0 ? -back : back) > (x < 0 ? -x : x)) --bits;
  return bits_as<float>(bits | 1U);
}

/// The range of an integer type, as constants that device code may read.
template <class Integer>
struct range_of {
  static constexpr Integer lowest = std::numeric_limits<Integer>::min();
  static constexpr Integer highest = std::numeric_limits<Integer>::max();
  /// One above the highest: a power of two, exact in every float where the highest itself is not.
  static constexpr double end =
      2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<Integer>::digits - 1));
  static constexpr double start = std::is_signed_v<Integer> ? -end : 0.0;
};

/// Toward zero; the nearest end of the range for what lies outside, 0 for NaN.
template <class To, class Float>
PENSTOCK_HOST_DEVICE inline To truncated(Float x) noexcept {
  constexpr Float start = range_of<To>::start, end = range_of<To>::end;
  if (x != x) return 0;
  if (x <= start) return range_of<To>::lowest;
  if (x >= end) return range_of<To>::highest;
  return static_cast<To>(x);
}

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>;

/// A plain cast of an arithmetic value.
template <class To, class Value>
PENSTOCK_HOST_DEVICE inline To from_value(Value x) noexcept {
  if constexpr (is_small_float<To>) {
    float narrow;
    if constexpr (sizeof(Value) == 8)
      narrow = odd_float(static_cast<double>(x));
    else
      narrow = static_cast<float>(x);
    if constexpr (std::is_same_v<To, float16_t>)
      return to_float16(narrow);
    else
      return to_bfloat16(narrow);
  } else if constexpr (std::is_floating_point_v<Value> && std::is_integral_v<To>) {
    return truncated<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// A plain cast.
template <class To, class From>
PENSTOCK_HOST_DEVICE inline To cast(From x) noexcept {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (is_small_float<From>)
    return from_value<To>(widened(x));
  else
    return from_value<To>(x);
}

/// Holds values that float32 does not.
template <class T>
inline constexpr bool exceeds_float32 = sizeof(T) == 8 || (std::is_integral_v<T> && sizeof(T) == 4);

/// The type in which x * scale + shift is worked out.
template <class From, class To>
using working_type = std::conditional_t<exceeds_float32<From> || exceeds_float32<To>, double, float>;

/// cast(x) * scale + shift. Product and sum are rounded each, so that all devices give the same bits: sources that
/// include this are compiled without contraction (-ffp-contract=off, --fmad=false).
template <class From, class To>
struct affine {
  using work = working_type<From, To>;
  work scale;
  work shift;
  PENSTOCK_HOST_DEVICE To operator()(From x) const noexcept { return from_value<To>(cast<work>(x) * scale + shift); }
};

}  // namespace penstock::gpu::convert
