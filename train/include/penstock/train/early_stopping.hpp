#pragma once

#include <penstock/train/metrics.hpp>

#include <cstdint>
#include <string_view>

namespace penstock::train {

/// What tells a better epoch from a worse one.
enum class quantity : std::uint8_t {
  loss,     ///< the smaller, the better
  accuracy  ///< the larger, the better
};
std::string_view name_of(quantity) noexcept;
/// Throws std::invalid_argument with the names there are.
quantity parse_quantity(std::string_view name);

/// When training has come to nothing better for too long.
struct early_stopping {
  quantity watched = quantity::loss;
  std::uint64_t patience = 0;  ///< epochs in a row without an improvement that end training; 0: it never ends early
  double min_delta = 0;        ///< what the watched quantity must change by to count as an improvement
};

/// Throws std::invalid_argument with the value that is outside its range.
void check(const early_stopping& rule);

/// The epochs that were judged so far: a part of a run's state.
struct judged_epochs {
  std::uint64_t epochs = 0;  ///< the run's first so many were looked at; 0: none
  std::uint64_t best = 0;    ///< the best epoch, counted from 0
  double best_value = 0;     ///< what was watched then
  double reference = 0;      ///< what the last improvement came to; smaller changes than min_delta leave it
  std::uint64_t waited = 0;  ///< epochs since
  quantity watched = quantity::loss;

  friend bool operator==(const judged_epochs&, const judged_epochs&) = default;
};

/// Takes epoch number `epoch` into account; `result` is what its evaluation gave. True where it is the best so far,
/// whatever min_delta. A result that is not a number is no improvement. Where another quantity was watched before, this
/// is the first epoch that counts.
bool judge(const early_stopping& rule, std::uint64_t epoch, const metrics& result, judged_epochs& so_far) noexcept;
/// Training is over, by what the rule watches.
bool is_over(const early_stopping& rule, const judged_epochs& so_far) noexcept;

}  // namespace penstock::train
