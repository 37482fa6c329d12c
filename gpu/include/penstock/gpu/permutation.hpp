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
  constexpr permutation(std::uint64_t size, std::uint64_t key) noexcept
      : size_(size), key_(key), half_bits_(half_bits_of(size)), enabled_(size > 1) {}
  static constexpr permutation identity() noexcept { return {}; }

  /// Several lanes that take turns: index i is turn i / lanes of lane i % lanes, and lanes lie one after another in
  /// what it maps to, the first size % lanes of them one longer. Within lane l turns are permuted by the key
  /// mix(key ^ (first + l * step)), or kept in order where `shuffled` is false.
  static constexpr permutation dealt(std::uint64_t size, std::uint64_t lanes, bool shuffled, std::uint64_t key,
                                     std::uint64_t first, std::uint64_t step) noexcept {
    permutation draw(size, key);
    draw.lanes_ = lanes;
    draw.first_ = first;
    draw.step_ = step;
    draw.shuffled_ = shuffled;
    return draw;
  }

  /// Indices that it takes, from 0 on; any, where it is the identity.
  PENSTOCK_HOST_DEVICE constexpr std::uint64_t size() const noexcept { return size_; }
  /// Maps every index to itself.
  PENSTOCK_HOST_DEVICE constexpr bool is_identity() const noexcept { return !enabled_; }

  PENSTOCK_HOST_DEVICE constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    if (!enabled_) return index;
    return lanes_ > 1 ? in_lane(index) : walk(index, size_, half_bits_, key_);
  }

 private:
  static constexpr int rounds = 8;

  PENSTOCK_HOST_DEVICE static constexpr unsigned half_bits_of(std::uint64_t size) noexcept {
    unsigned half_bits = 1;
    while (half_bits < 32 && (std::uint64_t{1} << (2 * half_bits)) < size) ++half_bits;
    return half_bits;
  }

  PENSTOCK_HOST_DEVICE constexpr std::uint64_t in_lane(std::uint64_t index) const noexcept {
    const std::uint64_t lane = index % lanes_, turn = index / lanes_;
    const std::uint64_t turns = size_ / lanes_, longer = size_ % lanes_;
    const std::uint64_t before = lane * turns + (lane < longer ? lane : longer), own = turns + (lane < longer);
    if (!shuffled_ || own < 2) return before + turn;
    return before + walk(turn, own, half_bits_of(own), mix(key_ ^ (first_ + lane * step_)));
  }

  PENSTOCK_HOST_DEVICE static constexpr std::uint64_t walk(std::uint64_t index, std::uint64_t size, unsigned half_bits,
                                                           std::uint64_t key) noexcept {
    do index = shuffle_once(index, half_bits, key);
    while (index >= size);
    return index;
  }

  PENSTOCK_HOST_DEVICE static constexpr std::uint64_t shuffle_once(std::uint64_t x, unsigned half_bits,
                                                                   std::uint64_t key) noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
    std::uint64_t left = x >> half_bits, right = x & mask;
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t next =
          left ^ (mix(right ^ (key + static_cast<std::uint64_t>(round) * 0xd1342543de82ef95u)) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits) | right;
  }

  std::uint64_t size_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t lanes_ = 1;
  std::uint64_t first_ = 0;
  std::uint64_t step_ = 0;
  unsigned half_bits_ = 1;
  bool enabled_ = false;
  bool shuffled_ = true;
};

}  // namespace penstock::gpu
