#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock {

/// Element types that Penstock moves and converts. Booleans travel as uint8, fixed strings and opaque bytes as uint8
/// with one more dimension.
enum class type : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,   ///< IEEE 754 binary16
  bfloat16,  ///< the upper half of a binary32
  float32,
  float64
};

/// Bits of an IEEE 754 binary16; storage only.
struct float16_t {
  std::uint16_t bits = 0;
};
/// Bits of a bfloat16; storage only.
struct bfloat16_t {
  std::uint16_t bits = 0;
};

/// Bytes of one element.
constexpr std::size_t size_of(type t) noexcept {
  switch (t) {
    case type::int8:
    case type::uint8: return 1;
    case type::int16:
    case type::uint16:
    case type::float16:
    case type::bfloat16: return 2;
    case type::int32:
    case type::uint32:
    case type::float32: return 4;
    case type::int64:
    case type::uint64:
    case type::float64: return 8;
  }
  return 0;
}

constexpr bool is_floating(type t) noexcept { return t >= type::float16; }

/// The enumerator's name: "float32".
constexpr std::string_view name_of(type t) noexcept {
  constexpr std::string_view names[] = {"int8",  "uint8",  "int16",   "uint16",   "int32",   "uint32",
                                        "int64", "uint64", "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<std::size_t>(t)];
}

/// The type named `name`; throws std::invalid_argument with the names there are.
type parse_type(std::string_view name);

template <class T>
struct type_of_t;
template <>
struct type_of_t<std::int8_t> {
  static constexpr type value = type::int8;
};
template <>
struct type_of_t<std::uint8_t> {
  static constexpr type value = type::uint8;
};
template <>
struct type_of_t<std::int16_t> {
  static constexpr type value = type::int16;
};
template <>
struct type_of_t<std::uint16_t> {
  static constexpr type value = type::uint16;
};
template <>
struct type_of_t<std::int32_t> {
  static constexpr type value = type::int32;
};
template <>
struct type_of_t<std::uint32_t> {
  static constexpr type value = type::uint32;
};
template <>
struct type_of_t<std::int64_t> {
  static constexpr type value = type::int64;
};
template <>
struct type_of_t<std::uint64_t> {
  static constexpr type value = type::uint64;
};
template <>
struct type_of_t<float16_t> {
  static constexpr type value = type::float16;
};
template <>
struct type_of_t<bfloat16_t> {
  static constexpr type value = type::bfloat16;
};
template <>
struct type_of_t<float> {
  static constexpr type value = type::float32;
};
template <>
struct type_of_t<double> {
  static constexpr type value = type::float64;
};

/// The enumerator of a C++ type.
template <class T>
inline constexpr type type_of = type_of_t<T>::value;

/// Calls `f` with a value of the C++ type that `t` names: visit_type(t, [](auto zero) { using T = decltype(zero); ...
/// }).
template <class F>
decltype(auto) visit_type(type t, F&& f) {
  switch (t) {
    case type::int8: return f(std::int8_t{});
    case type::uint8: return f(std::uint8_t{});
    case type::int16: return f(std::int16_t{});
    case type::uint16: return f(std::uint16_t{});
    case type::int32: return f(std::int32_t{});
    case type::uint32: return f(std::uint32_t{});
    case type::int64: return f(std::int64_t{});
    case type::uint64: return f(std::uint64_t{});
    case type::float16: return f(float16_t{});
    case type::bfloat16: return f(bfloat16_t{});
    case type::float32: return f(float{});
    case type::float64: break;
  }
  return f(double{});
}

}  // namespace penstock
