#include "check.hpp"
#include "column_sums.hpp"
#include "kernels.hpp"
#include "values.hpp"

#include "../activation.hpp"

#include <type_traits>

namespace penstock::train::cuda {
namespace {

constexpr unsigned warp = 32;
constexpr unsigned tile_columns = 32;
constexpr unsigned tile_threads = 8;  // down the rows
// Where one block takes all rows: narrow, so that there are many blocks, of many threads down the rows.
constexpr unsigned narrow_columns = 8;
constexpr unsigned narrow_threads = 512;
constexpr unsigned narrow_depth = 4;  // rows whose loads a thread has in flight at once

/// The gradient through the activation.
template <class F, class S, class T = arithmetic<S>>
__device__ S changed(F f, S y, S dy) {
  return static_cast<S>(f.gradient(static_cast<T>(y), static_cast<T>(dy)));
}

/// The same at one place, where it stays.
template <class F, class S, class T = arithmetic<S>>
__device__ T change_at(F f, const S* y, S* dy, std::size_t at) {
  if constexpr (!std::is_same_v<F, identity_activation>) dy[at] = changed(f, y[at], dy[at]);
  return static_cast<T>(dy[at]);
}

/// Adds up what the warp's lanes hold of `Width` columns, where every `Across`-th lane has the same. Lanes halve what
/// they hold with each other: afterwards sum[0] is that of one column. Returns which.
template <unsigned Width, unsigned Across, class T>
__device__ unsigned add_lanes(T (&sum)[Width], unsigned lane) {
  constexpr unsigned whole_warp = 0xffffffffu;
  unsigned column = 0, distance = warp / 2;
#pragma unroll
  for (unsigned held = Width / 2; held > 0; held /= 2, distance /= 2) {
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (unsigned e = 0; e < held; ++e) {
      const T given = upper ? sum[e] : sum[e + held], kept = upper ? sum[e + held] : sum[e];
      sum[e] = kept + __shfl_xor_sync(whole_warp, given, distance);
    }
    if (upper) column += held;
  }
#pragma unroll
  for (; distance >= Across; distance /= 2) sum[0] += __shfl_xor_sync(whole_warp, sum[0], distance);
  return column;
}

/// Gradients through the activation, and the sums of each column, at once. A thread takes `Width` neighbours, one load,
/// of some rows.
template <unsigned Width, class F, class S, class T>
__global__ void activation_gradient_at_once_kernel(F f, std::size_t rows, std::size_t columns, const S* y, S* dy,
                                                   T* column_sums, bool accumulate) {
  using unit = values<S, Width>;
  constexpr unsigned across = narrow_columns / Width, down = narrow_threads / across, warps = narrow_threads / warp;
  constexpr bool changes = !std::is_same_v<F, identity_activation>;
  __shared__ T sums[warps][narrow_columns];
  const unsigned row = threadIdx.x / across, first_column = threadIdx.x % across * Width;
  const std::size_t j = std::size_t{blockIdx.x} * narrow_columns + first_column, units = columns / Width;
  const unit* const outputs = reinterpret_cast<const unit*>(y + j);
  unit* const gradients = reinterpret_cast<unit*>(dy + j);
  T sum[Width] = {};
  for (std::size_t first = row; j < columns && first < rows; first += narrow_depth * down) {
    unit out[narrow_depth], change[narrow_depth];
#pragma unroll
    for (unsigned d = 0; d < narrow_depth; ++d) {
      const std::size_t i = first + d * down;
      if (i >= rows) break;
      if (changes) out[d] = outputs[i * units];
      change[d] = gradients[i * units];
    }
#pragma unroll
    for (unsigned d = 0; d < narrow_depth; ++d) {
      const std::size_t i = first + d * down;
      if (i >= rows) break;
#pragma unroll
      for (unsigned e = 0; e < Width; ++e) {
        if (changes) change[d].at[e] = changed(f, out[d].at[e], change[d].at[e]);
        sum[e] += static_cast<T>(change[d].at[e]);
      }
      if (changes) gradients[i * units] = change[d];
    }
  }
  const unsigned lane = threadIdx.x % warp, column = add_lanes<Width, across>(sum, lane);
  if (lane % (warp / Width) < across) sums[threadIdx.x / warp][first_column + column] = sum[0];
  __syncthreads();
  const std::size_t mine = std::size_t{blockIdx.x} * narrow_columns + threadIdx.x;
  if (threadIdx.x >= narrow_columns || mine >= columns) return;
  T total = accumulate ? column_sums[mine] : T(0);
  for (unsigned n = 0; n < warps; ++n) total += sums[n][threadIdx.x];
  column_sums[mine] = total;
}

/// Gradients through the activation, and the sums of each column over column_sum_rows rows. Blocks are numbered in one
/// dimension, which may be long enough for any number of rows: those of a piece of rows one after another.
template <class F, class S, class T>
__global__ void activation_gradient_kernel(F f, unsigned blocks_of_piece, std::size_t rows, std::size_t columns,
                                           const S* y, S* dy, T* partial) {
  __shared__ T sums[tile_threads][tile_columns];
  const unsigned piece = blockIdx.x / blocks_of_piece;
  const std::size_t j = std::size_t{blockIdx.x % blocks_of_piece} * tile_columns + threadIdx.x;
  const std::size_t first = std::size_t{piece} * column_sum_rows;
  const std::size_t last = first + column_sum_rows < rows ? first + column_sum_rows : rows;
  T sum = 0;
  if (j < columns)
    for (std::size_t i = first + threadIdx.y; i < last; i += tile_threads) sum += change_at(f, y, dy, i * columns + j);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || j >= columns) return;
  for (unsigned n = 1; n < tile_threads; ++n) sum += sums[n][threadIdx.x];
  partial[piece * columns + j] = sum;
}

template <class T>
__global__ void add_partial_kernel(std::size_t pieces, std::size_t columns, const T* partial, T* sums,
                                   bool accumulate) {
  const std::size_t j = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= columns) return;
  T sum = accumulate ? sums[j] : T(0);
  for (std::size_t n = 0; n < pieces; ++n) sum += partial[n * columns + j];
  sums[j] = sum;
}

}  // namespace

template <class S, class T>
void activation_gradient(cudaStream_t stream, activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy,
                         T* bias_gradient, bool accumulate, T* partial) {
  if (rows <= column_sum_rows_at_once) {
    constexpr unsigned wide = 16 / sizeof(S);
    const auto blocks = static_cast<unsigned>((columns + narrow_columns - 1) / narrow_columns);
    const bool is_wide = columns % wide == 0 && is_aligned(y, 16) && is_aligned(dy, 16);
    visit_activation(kind, [&](auto f) {
      const auto kernel = is_wide ? &activation_gradient_at_once_kernel<wide, decltype(f), S, T>
                                  : &activation_gradient_at_once_kernel<1, decltype(f), S, T>;
      kernel<<<blocks, narrow_threads, 0, stream>>>(f, rows, columns, y, dy, bias_gradient, accumulate);
    });
    return check(cudaGetLastError(), "launching the gradient of an activation");
  }
  const std::size_t pieces = (rows + column_sum_rows - 1) / column_sum_rows;
  const auto blocks_of_piece = static_cast<unsigned>((columns + tile_columns - 1) / tile_columns);
  const auto blocks = static_cast<unsigned>(pieces * blocks_of_piece);
  const dim3 block(tile_columns, tile_threads);
  visit_activation(kind, [&](auto f) {
    activation_gradient_kernel<<<blocks, block, 0, stream>>>(f, blocks_of_piece, rows, columns, y, dy, partial);
  });
  check(cudaGetLastError(), "launching the gradient of an activation");
  constexpr unsigned threads = 128;
  add_partial_kernel<<<static_cast<unsigned>((columns + threads - 1) / threads), threads, 0, stream>>>(
      pieces, columns, partial, bias_gradient, accumulate);
  check(cudaGetLastError(), "launching the gradient of a bias");
}

template void activation_gradient(cudaStream_t, activation, std::size_t, std::size_t, const float*, float*, float*,
                                  bool, float*);
template void activation_gradient(cudaStream_t, activation, std::size_t, std::size_t, const double*, double*, double*,
                                  bool, double*);
template void activation_gradient(cudaStream_t, activation, std::size_t, std::size_t, const bfloat16*, bfloat16*,
                                  float*, bool, float*);
template void activation_gradient(cudaStream_t, activation, std::size_t, std::size_t, const float16*, float16*, float*,
                                  bool, float*);

}  // namespace penstock::train::cuda
