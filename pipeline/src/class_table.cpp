#include "class_table.hpp"

#include <penstock/gpu/permutation.hpp>

namespace penstock::pipeline {

class_table::class_table(const row_classes& known)
    : starts_(std::uint64_t{known.classes} + 1, 0), places_(known.of_row.size()) {
  for (const std::uint32_t one : known.of_row) ++starts_[std::uint64_t{one} + 1];
  for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  std::vector<std::uint64_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t row = 0; row < known.of_row.size(); ++row) places_[next[known.of_row[row]]++] = row;
}

std::uint64_t class_table::fingerprint() const noexcept {
  std::uint64_t mixed = gpu::mix(starts_.size());
  for (const std::uint64_t start : starts_) mixed = gpu::mix(mixed ^ start);
  for (const std::uint64_t place : places_) mixed = gpu::mix(mixed ^ place);
  return mixed;
}

}  // namespace penstock::pipeline
