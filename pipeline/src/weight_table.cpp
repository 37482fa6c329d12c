#include "weight_table.hpp"

#include <penstock/gpu/permutation.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace penstock::pipeline {

void weight_table::add(double weight) { starts_.push_back(std::bit_cast<std::uint64_t>(weight)); }

void weight_table::finish() {
  if (starts_.empty()) return;
  // Sums are long: in double, 1e8 rows would lose as many places as the last rows' weights may have.
  long double sum = 0;
  for (const std::uint64_t bits : starts_) sum += std::bit_cast<double>(bits);
  if (!(sum > 0) || !std::isfinite(static_cast<double>(sum)))
    throw std::invalid_argument("rows are drawn by weight, and the sum of the weights is not above 0 and finite");
  constexpr long double scale = 0x1p63L;
  long double before = 0;
  for (std::uint64_t& start : starts_) {
    const double weight = std::bit_cast<double>(start);
    start = static_cast<std::uint64_t>(before / sum * scale);
    before += weight;
  }
}

/// Rows without weight begin where the next one does: the last of these is the one with a weight.
std::uint64_t weight_table::place_at(std::uint64_t number) const noexcept {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), number);
  return static_cast<std::uint64_t>(after - starts_.begin()) - 1;
}

std::uint64_t weight_table::fingerprint() const noexcept {
  std::uint64_t mixed = gpu::mix(starts_.size());
  for (const std::uint64_t start : starts_) mixed = gpu::mix(mixed ^ start);
  return mixed;
}

}  // namespace penstock::pipeline
