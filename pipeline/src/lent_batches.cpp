#include "lent_batches.hpp"

#include <bit>

namespace penstock::pipeline {

lent_batches::lent_batches(std::size_t most) : most_(most), mask_(std::bit_ceil(most) - 1), back_(mask_ + 1) {}

std::size_t lent_batches::out() const noexcept {
  std::size_t count = 0;
  for (std::uint64_t number = in_order(); number < lent_; ++number) count += is_back(number) ? 0 : 1;
  return count;
}

}  // namespace penstock::pipeline
