#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif

namespace penstock::gpu {

/// Mixes 64 bits (the finaliser of SplitMix64; Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014).
PENSTOCK_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A bijection of [0, size), computed and not stored: a Feistel network over the next even power of two, walked until
/// the value lies inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). The same on host and
/// device. A size of 0 or 1, or identity(), maps every index to itself.
class permutation {
 public:
  constexpr permutation() noexcept = default;
  constexpr permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size), key_(key) {
    while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
    if (size > 1) enabled_ = true;
  }
  static constexpr permutation identity() noexcept { return {}; }

  /// Indices that it takes, from 0 on; any, where it is the identity.
  PENSTOCK_HOST_DEVICE constexpr std::uint64_t size() const noexcept { return size_; }
  /// Maps every index to itself.
  PENSTOCK_HOST_DEVICE constexpr bool is_identity() const noexcept { return !enabled_; }

  PENSTOCK_HOST_DEVICE constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    if (!enabled_) return index;
    do index = shuffle_once(index);
    while (index >= size_);
    return index;
  }

 private:
  static constexpr int rounds = 8;

  PENSTOCK_HOST_DEVICE constexpr std::uint64_t shuffle_once(std::uint64_t x) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t next =
          left ^ (mix(right ^ (key_ + static_cast<std::uint64_t>(round) * 0xd1342543de82ef95u)) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t size_ = 0;
  std::uint64_t key_ = 0;
  unsigned half_bits_ = 1;
  bool enabled_ = false;
};

}  // namespace penstock::gpu
