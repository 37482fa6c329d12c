#include "check.hpp"
#include "kernels.hpp"
#include "note_input.hpp"

#include "../merge_moments.hpp"

#include <cmath>

namespace penstock::train::cuda {
namespace {

constexpr unsigned tile_columns = 32;
constexpr unsigned tile_threads = 16;  // down the rows

/// The sum over the tile's threads of one column, in all of them; the same order every time.
__device__ double column_sum(double value) {
  __shared__ double values[tile_threads][tile_columns];
  values[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (unsigned n = 0; n < tile_threads; ++n) sum += values[n][threadIdx.x];
  __syncthreads();
  return sum;
}

/// The same of the largest value.
__device__ double largest_of_column(double value) {
  __shared__ double values[tile_threads][tile_columns];
  values[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  double largest = values[0][threadIdx.x];
  for (unsigned n = 1; n < tile_threads; ++n) largest = fmax(largest, values[n][threadIdx.x]);
  return largest;
}

template <class T>
__global__ void observe_kernel(taken_rows<T> rows, std::size_t columns, moment_columns moments, step_state* state) {
  const row_block& block = rows.block;
  const auto masked = [&](std::size_t i) { return rows.weights != nullptr && rows.weights[i] == T(0); };
  const std::size_t j = std::size_t{blockIdx.x} * tile_columns + threadIdx.x;
  const bool inside = j < columns;
  // Distances from one of the values add up to exactly 0 where all are the same.
  double origin = -HUGE_VAL;
  for (std::size_t i = threadIdx.y; inside && i < block.valid && !isfinite(origin); i += tile_threads)
    if (!masked(i) && isfinite(rows.x[i * columns + j])) origin = static_cast<double>(rows.x[i * columns + j]);
  origin = largest_of_column(origin);
  double count = 0, sum = 0;
  for (std::size_t i = threadIdx.y; inside && i < block.valid; i += tile_threads) {
    const T value = rows.x[i * columns + j];
    if (masked(i)) continue;
    if (isfinite(value)) {
      count += 1;
      sum += static_cast<double>(value) - origin;
    } else {
      note_input(state->progress.bad_input, block.first_row + i);
    }
  }
  count = column_sum(count);
  sum = column_sum(sum);
  const double mean = count > 0 ? origin + sum / count : 0;
  double squares = 0;
  for (std::size_t i = threadIdx.y; inside && i < block.valid; i += tile_threads) {
    const T value = rows.x[i * columns + j];
    const double distance = isfinite(value) && !masked(i) ? static_cast<double>(value) - mean : 0;
    squares += distance * distance;
  }
  squares = column_sum(squares);
  if (inside && threadIdx.y == 0) merge_moments(moments, j, count, mean, squares);
}

}  // namespace

template <class T>
void observe(cudaStream_t stream, const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments,
             step_state* state) {
  const auto blocks = static_cast<unsigned>((columns + tile_columns - 1) / tile_columns);
  observe_kernel<<<blocks, dim3(tile_columns, tile_threads), 0, stream>>>(rows, columns, moments, state);
  check(cudaGetLastError(), "launching the statistics of inputs");
}

template void observe(cudaStream_t, const taken_rows<float>&, std::size_t, const moment_columns&, step_state*);
template void observe(cudaStream_t, const taken_rows<double>&, std::size_t, const moment_columns&, step_state*);

}  // namespace penstock::train::cuda
