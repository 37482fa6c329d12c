#pragma once

#include <penstock/gpu/permutation.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>

namespace penstock::train {

/// 64 random bits that are a function of their key: (seed, layer, element).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t layer, std::uint64_t element) noexcept {
  return gpu::mix(gpu::mix(gpu::mix(seed) + layer) + element);
}

/// A sample of the standard normal distribution for each key, by Box and Muller's transform of two uniforms.
inline double random_normal(std::uint64_t seed, std::uint64_t layer, std::uint64_t element) noexcept {
  const double first = (static_cast<double>(random_bits(seed, layer, 2 * element) >> 11) + 0.5) * 0x1p-53;
  const double second = (static_cast<double>(random_bits(seed, layer, 2 * element + 1) >> 11) + 0.5) * 0x1p-53;
  return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
}

}  // namespace penstock::train
