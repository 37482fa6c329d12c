#include "synthetic_rows.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace examples {
namespace {

/// SplitMix64's finaliser: 64 bits that look random, from 64 that need not.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Nearly normal, mean 0, standard deviation 1: the sum of four uniform values of 16 bits, which has variance 4 / 12.
float noise(std::uint64_t bits) noexcept {
  const auto sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<float>(sum) - 2 * 65535.0F) * (1.7320508F / 65535.0F);
}

template <class T>
T stored(float value) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, penstock::bfloat16_t>) {
    return {static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16)};
  } else if constexpr (std::is_same_v<T, penstock::float16_t>) {
    // Ten bits of fraction, rounded; values are far below binary16's largest, and what is below its smallest becomes 0.
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits & 0x7fffffffu) + 0x1000u;
    const std::uint32_t magnitude = rounded < 0x38800000u ? 0 : (rounded - 0x38000000u) >> 13;
    return {static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | magnitude)};
  } else {
    const double shifted = std::round(24.0 * value) + (std::is_unsigned_v<T> ? 128 : 0);
    constexpr double low = std::is_unsigned_v<T> ? 0.0 : -128.0, high = std::is_unsigned_v<T> ? 255.0 : 127.0;
    return static_cast<T>(std::clamp(shifted, low, high));
  }
}

template <class T>
void fill_row(const synthetic_task& task, std::uint64_t row, T* out) noexcept {
  const float distance = 4.0F / std::sqrt(static_cast<float>(task.columns));
  const auto centre = mix(mix(task.seed + 1) ^ static_cast<std::uint64_t>(task.label(row)));
  const auto own = mix(mix(task.seed + 2) ^ row);
  for (std::uint64_t column = 0; column < task.columns; ++column)
    out[column] = stored<T>(distance * noise(mix(centre + column)) + noise(mix(own + column)));
}

}  // namespace

std::int32_t synthetic_task::label(std::uint64_t row) const noexcept {
  return static_cast<std::int32_t>(mix(mix(seed) ^ row) % classes);
}

void synthetic_task::fill(std::uint64_t first_row, std::span<std::byte> out) const {
  penstock::visit_type(element, [&](auto zero) {
    using T = decltype(zero);
    T* const values = reinterpret_cast<T*>(out.data());
    const auto rows = out.size() / row_bytes();
    oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<std::uint64_t>(0, rows), [&](const auto& range) {
      for (auto row = range.begin(); row < range.end(); ++row) fill_row(*this, first_row + row, values + row * columns);
    });
  });
}

}  // namespace examples
