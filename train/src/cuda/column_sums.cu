#include "check.hpp"
#include "column_sums.hpp"
#include "kernels.hpp"

#include "../activation.hpp"

#include <type_traits>

namespace penstock::train::cuda {
namespace {

constexpr unsigned tile_columns = 32;
constexpr unsigned tile_threads = 8;  // down the rows
// Where one block takes all rows: narrow, so that there are many blocks, of many threads down the rows.
constexpr unsigned narrow_columns = 16;
constexpr unsigned narrow_threads = 64;

/// The gradient through the activation at one place, where it stays.
template <class F, class S, class T = arithmetic<S>>
__device__ T change_at(F f, const S* y, S* dy, std::size_t at) {
  if constexpr (std::is_same_v<F, identity_activation>) return static_cast<T>(dy[at]);
  const S change = static_cast<S>(f.gradient(static_cast<T>(y[at]), static_cast<T>(dy[at])));
  dy[at] = change;
  return static_cast<T>(change);
}

/// Gradients through the activation, and the sums of each column, at once.
template <class F, class S, class T>
__global__ void activation_gradient_at_once_kernel(F f, std::size_t rows, std::size_t columns, const S* y, S* dy,
                                                   T* column_sums, bool accumulate) {
  __shared__ T sums[narrow_threads][narrow_columns];
  const std::size_t j = std::size_t{blockIdx.x} * narrow_columns + threadIdx.x;
  T sum = 0;
  if (j < columns)
    for (std::size_t i = threadIdx.y; i < rows; i += narrow_threads) sum += change_at(f, y, dy, i * columns + j);
  sums[threadIdx.y][threadIdx.x] = sum;
  for (unsigned distance = narrow_threads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.y < distance) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + distance][threadIdx.x];
  }
  if (threadIdx.y != 0 || j >= columns) return;
  column_sums[j] = accumulate ? column_sums[j] + sums[0][threadIdx.x] : sums[0][threadIdx.x];
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
    const auto blocks = static_cast<unsigned>((columns + narrow_columns - 1) / narrow_columns);
    const dim3 threads(narrow_columns, narrow_threads);
    visit_activation(kind, [&](auto f) {
      activation_gradient_at_once_kernel<<<blocks, threads, 0, stream>>>(f, rows, columns, y, dy, bias_gradient,
                                                                         accumulate);
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
