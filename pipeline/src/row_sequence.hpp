#pragma once

#include <penstock/gpu/permutation.hpp>

#include <cstdint>
#include <string>

namespace penstock::pipeline {

/// The rows of an epoch in the order in which they are read, before they are dealt to shards. Rows are counted among
/// those that take part ("places"). Pure; thread-safe.
class row_sequence {
 public:
  virtual ~row_sequence() = default;

  struct stretch {
    std::uint64_t first = 0;
    std::uint64_t rows = 0;
  };
  /// Rows that follow each other in storage from `position` < rows() on: at least one, none beyond the run's end.
  virtual stretch at(std::uint64_t epoch, std::uint64_t position) const noexcept = 0;
  /// Rows of an epoch.
  virtual std::uint64_t rows() const noexcept = 0;
  /// Rows may come more than once in an epoch, and others not at all.
  virtual bool repeats() const noexcept { return false; }
  /// A number that tells apart what rows are drawn by, beside the options; 0: nothing.
  virtual std::uint64_t fingerprint() const noexcept { return 0; }
  /// For people: "weighted: seed 1, 100 rows drawn with repetition". Empty: the order has words of its own.
  virtual std::string description() const { return {}; }
  /// For people, where rows come from several sources.
  virtual std::string sources() const { return {}; }
};

/// Purposes that draw from the same seed and epoch must not share keys.
enum class purpose : std::uint64_t {
  runs = 1,
  tail,
  draw,
  weight,
  classes,
  in_class,
  sources,
  in_source,
  filling,
  rest
};

/// What key() mixes `index` into.
constexpr std::uint64_t key_base(std::uint64_t seed, std::uint64_t epoch, purpose why) noexcept {
  return gpu::mix(gpu::mix(gpu::mix(seed) ^ epoch) ^ static_cast<std::uint64_t>(why));
}

constexpr std::uint64_t key(std::uint64_t seed, std::uint64_t epoch, purpose why, std::uint64_t index) noexcept {
  return gpu::mix(key_base(seed, epoch, why) ^ index);
}

}  // namespace penstock::pipeline
