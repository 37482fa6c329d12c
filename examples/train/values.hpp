#pragma once

#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace examples {

/// IEEE 754 binary16: one bit of sign, five of exponent with a bias of 15, ten of mantissa.
inline double value_of(penstock::float16_t half) {
  const int exponent = half.bits >> 10 & 0x1f, mantissa = half.bits & 0x3ff;
  double magnitude = std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  return half.bits >> 15 != 0 ? -magnitude : magnitude;
}

/// Value number `n` of a row reader's bytes, in this machine's byte order.
template <class T>
double value_at(const std::byte* bytes, std::size_t n, bool swapped) {
  std::array<std::byte, sizeof(T)> raw{};
  std::memcpy(raw.data(), bytes + n * sizeof(T), sizeof(T));
  if (swapped) std::reverse(raw.begin(), raw.end());
  const T value = std::bit_cast<T>(raw);
  if constexpr (std::is_same_v<T, penstock::float16_t>)
    return value_of(value);
  else if constexpr (std::is_same_v<T, penstock::bfloat16_t>)
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
  else
    return static_cast<double>(value);
}

/// The number at `n` of what a reader gave.
inline double value_at(const penstock::io::element_type& element, const std::byte* bytes, std::size_t n) {
  return penstock::visit_type(element.element,
                              [&](auto zero) { return value_at<decltype(zero)>(bytes, n, element.swapped); });
}

/// Calls f(first_row, rows, bytes) for pieces of all rows of a reader. About `damaged_rows` rows that are damaged in
/// their file are left out, chunk by chunk; more are io::error. (The pipeline counts exactly.)
template <class F>
void for_each_piece(penstock::io::row_reader& reader, std::uint64_t damaged_rows, F f) {
  constexpr std::uint64_t most_rows = 65536;
  reader.reserve({});
  std::vector<std::byte> bytes;
  const std::uint64_t cut = std::clamp<std::uint64_t>(reader.chunk_rows(), 1, most_rows);
  const std::uint64_t piece_rows = most_rows / cut * cut;
  // A chunk of a later file may lie across two pieces.
  std::uint64_t may_be_damaged = damaged_rows == 0 ? 0 : damaged_rows + cut;
  const auto read = [&](auto& self, std::uint64_t first, std::uint64_t rows) -> void {
    bytes.resize(rows * reader.row_bytes());
    try {
      reader.read(first, rows, bytes);
    } catch (const penstock::io::error& e) {
      if (!e.context().damaged || (rows <= cut && rows > may_be_damaged)) throw;
      if (rows <= cut) {
        may_be_damaged -= rows;
        return;
      }
      const std::uint64_t half = (rows / 2 + cut - 1) / cut * cut;
      self(self, first, half);
      return self(self, first + half, rows - half);
    }
    f(first, rows, bytes.data());
  };
  for (std::uint64_t first = 0; first < reader.rows(); first += piece_rows)
    read(read, first, std::min(piece_rows, reader.rows() - first));
}

}  // namespace examples
