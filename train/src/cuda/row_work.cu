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

/// A piece of a row at a time: blockIdx.y counts rows, and blockIdx.z inputs. One thread notes the pass for the kernels
/// that follow, whose launches are recorded and so cannot be told.
template <class S>
__global__ void take_kernel(intake<S> what) {
  using T = arithmetic<S>;
  const taken_rows<T>& rows = what.rows;
  const row_block& block = rows.block;
  const std::size_t columns = what.columns;
  if (blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0 && threadIdx.x == 0) {
    what.state->block = block;
    what.state->targets = rows.targets;
    what.state->weights = rows.weights;
    what.state->learning_rate = rows.learning_rate;
  }
  const bool second = blockIdx.z != 0;
  const T* const x = second ? rows.x2 : rows.x;
  S* const out = second ? what.out + block.rows * columns : what.out;
  for (std::size_t i = blockIdx.y; i < block.rows; i += gridDim.y) {
    const bool counted = i < block.valid && (rows.weights == nullptr || rows.weights[i] != T(0));
    bool bad = false;
    for (std::size_t j = blockIdx.x * blockDim.x + threadIdx.x; j < columns; j += gridDim.x * blockDim.x) {
      T value = 0;
      if (counted) {
        value = (x[i * columns + j] - what.mean[j]) * what.scale[j];
        bad = bad || !isfinite(value);
      }
      out[i * columns + j] = static_cast<S>(value);
    }
    if (bad) note_first(what.state->progress.bad_input, block.first_row + i + (second ? progress::of_second_input : 0));
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

template <class S>
cudaKernelNodeParams take_launch<S>::params() noexcept {
  constexpr std::size_t most_blocks = 65535;
  const std::size_t pieces = (what_.columns + block_threads - 1) / block_threads;
  cudaKernelNodeParams launch{};
  launch.func = reinterpret_cast<void*>(&take_kernel<S>);
  launch.gridDim =
      dim3(static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, most_blocks)),
           static_cast<unsigned>(std::min(what_.rows.block.rows, most_blocks)), what_.rows.x2 != nullptr ? 2 : 1);
  launch.blockDim = dim3(block_threads);
  launch.kernelParams = &argument_;
  return launch;
}

template <class T>
void add_scores(cudaStream_t stream, const row_score<T>* scores, bool gradient, step_state* state) {
  add_scores_kernel<<<1, block_threads, 0, stream>>>(scores, gradient, state);
  check(cudaGetLastError(), "launching the sums of the loss");
}

template class take_launch<float>;
template class take_launch<double>;
template class take_launch<bfloat16>;
template class take_launch<float16>;
template void add_scores(cudaStream_t, const row_score<float>*, bool, step_state*);
template void add_scores(cudaStream_t, const row_score<double>*, bool, step_state*);

}  // namespace penstock::train::cuda
