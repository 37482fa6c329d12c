#pragma once

#include <cstddef>

namespace penstock::train::cuda {

/// Columns are summed in pieces of so many rows, and the pieces in order.
inline constexpr std::size_t column_sum_rows = 64;

}  // namespace penstock::train::cuda
