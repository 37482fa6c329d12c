#include "check.hpp"
#include "kernels.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::train::cuda {
namespace {

constexpr unsigned warp = 32;
constexpr unsigned block_threads = 256;
constexpr unsigned whole_warp = 0xffffffffu;

__device__ void note_first(std::uint64_t& where, std::uint64_t row) {
  atomicMin(reinterpret_cast<unsigned long long*>(&where), static_cast<unsigned long long>(row));
}

template <class T>
__device__ T warp_sum(T value) {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(whole_warp, value, distance);
  return value;
}

/// The sum over the block's threads, in thread 0; the same order every time.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T sums[block_threads / warp];
  value = warp_sum(value);
  if (threadIdx.x % warp == 0) sums[threadIdx.x / warp] = value;
  __syncthreads();
  value = threadIdx.x < block_threads / warp ? sums[threadIdx.x] : T(0);
  if (threadIdx.x < warp) value = warp_sum(value);
  __syncthreads();
  return value;
}

/// A piece of a row at a time: blockIdx.y counts rows. One thread notes the pass for the kernels that follow, whose
/// launches are recorded and so cannot be told.
template <class S, class T>
__global__ void take_kernel(taken_rows<T> rows, std::size_t columns, const T* mean, const T* scale, S* out,
                            step_state* state) {
  const row_block& block = rows.block;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    state->block = block;
    state->targets = rows.targets;
    state->weights = rows.weights;
    state->learning_rate = rows.learning_rate;
  }
  for (std::size_t i = blockIdx.y; i < block.rows; i += gridDim.y) {
    const bool counted = i < block.valid && (rows.weights == nullptr || rows.weights[i] != T(0));
    bool bad = false;
    for (std::size_t j = blockIdx.x * blockDim.x + threadIdx.x; j < columns; j += gridDim.x * blockDim.x) {
      T value = 0;
      if (counted) {
        value = (rows.x[i * columns + j] - mean[j]) * scale[j];
        bad = bad || !isfinite(value);
      }
      out[i * columns + j] = static_cast<S>(value);
    }
    if (bad) note_first(state->progress.bad_input, block.first_row + i);
  }
}

/// One block: sums of the scores in a fixed order.
template <class T>
__global__ void add_scores_kernel(const row_score<T>* scores, bool gradient, step_state* state) {
  const row_block block = state->block;
  double loss = 0, square = 0, weight = 0;
  unsigned long long rows = 0, correct = 0, in_top_k = 0;
  for (std::size_t i = threadIdx.x; i < block.valid; i += block_threads) {
    const row_score<T> row = scores[i];
    loss += static_cast<double>(row.loss);
    square += static_cast<double>(row.square);
    weight += static_cast<double>(row.weight);
    rows += (row.hits & hit_counted) != 0 ? 1 : 0;
    correct += (row.hits & hit_first) != 0 ? 1 : 0;
    in_top_k += (row.hits & hit_top) != 0 ? 1 : 0;
  }
  loss = block_sum(loss);
  square = block_sum(square);
  weight = block_sum(weight);
  rows = block_sum(rows);
  correct = block_sum(correct);
  in_top_k = block_sum(in_top_k);
  if (threadIdx.x != 0) return;
  metrics& sums = state->progress.running;
  sums.loss_sum += loss;
  sums.square_sum += square;
  sums.weight_sum += weight;
  sums.rows += rows;
  sums.correct += correct;
  sums.in_top_k += in_top_k;
  if (gradient) state->weight_in_step += weight;
}

}  // namespace

template <class S, class T>
void take(cudaStream_t stream, const taken_rows<T>& rows, std::size_t columns, const T* mean, const T* scale, S* out,
          step_state* state) {
  const dim3 grid(
      static_cast<unsigned>(std::clamp<std::size_t>((columns + block_threads - 1) / block_threads, 1, 65535)),
      static_cast<unsigned>(std::min<std::size_t>(rows.block.rows, 65535)));
  take_kernel<<<grid, block_threads, 0, stream>>>(rows, columns, mean, scale, out, state);
  check(cudaGetLastError(), "launching the normalisation of inputs");
}

template <class T>
void add_scores(cudaStream_t stream, const row_score<T>* scores, bool gradient, step_state* state) {
  add_scores_kernel<<<1, block_threads, 0, stream>>>(scores, gradient, state);
  check(cudaGetLastError(), "launching the sums of the loss");
}

#define PENSTOCK_INSTANTIATE(S, T) \
  template void take(cudaStream_t, const taken_rows<T>&, std::size_t, const T*, const T*, S*, step_state*);
PENSTOCK_INSTANTIATE(float, float)
PENSTOCK_INSTANTIATE(double, double)
PENSTOCK_INSTANTIATE(bfloat16, float)
PENSTOCK_INSTANTIATE(float16, float)
#undef PENSTOCK_INSTANTIATE
template void add_scores(cudaStream_t, const row_score<float>*, bool, step_state*);
template void add_scores(cudaStream_t, const row_score<double>*, bool, step_state*);

}  // namespace penstock::train::cuda
