#pragma once

#include <cstddef>

namespace penstock::train::cuda {

/// Columns of up to so many rows are summed by one kernel.
inline constexpr std::size_t column_sum_rows_at_once = 1024;
/// Those of more in pieces of so many rows, and the pieces in order.
inline constexpr std::size_t column_sum_rows = 64;

}  // namespace penstock::train::cuda
