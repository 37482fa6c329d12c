#pragma once

#include "backend.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

namespace penstock::train {

/// Merges `count` values with a mean and a sum of squared distances into column `j`.
PENSTOCK_HOST_DEVICE inline void merge_moments(const moment_columns& m, std::size_t j, double count, double mean,
                                               double squares) {
  if (!(count > 0)) return;
  const double before = m.counts[j], all = before + count, distance = mean - m.means[j];
  m.counts[j] = all;
  m.means[j] += distance * (count / all);
  m.squares[j] += squares + distance * distance * (before * count / all);
}

}  // namespace penstock::train
