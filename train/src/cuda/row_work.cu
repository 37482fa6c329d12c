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
template <class T>
__global__ void take_kernel(row_block block, std::size_t columns, const T* x, const std::int32_t* labels, const T* mean,
                            const T* scale, T* out, step_state* state) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    state->block = block;
    state->labels = labels;
  }
  for (std::size_t i = blockIdx.y; i < block.rows; i += gridDim.y) {
    bool bad = false;
    for (std::size_t j = blockIdx.x * blockDim.x + threadIdx.x; j < columns; j += gridDim.x * blockDim.x) {
      T value = 0;
      if (i < block.valid) {
        value = (x[i * columns + j] - mean[j]) * scale[j];
        bad = bad || !isfinite(value);
      }
      out[i * columns + j] = value;
    }
    if (bad) note_first(state->progress.bad_input, block.first_row + i);
  }
}

template <class T>
struct top_value {
  T value;
  std::size_t index;
  /// The larger one; of equal ones the first.
  __device__ top_value best_of(const top_value& other) const {
    const bool keep = value > other.value || (value == other.value && index < other.index);
    return keep ? *this : other;
  }
};

/// One warp for each row: the peak, the sum of exponentials, the loss, the gradient in place of the logits.
template <class T>
__global__ void softmax_kernel(std::size_t rows, std::size_t classes, T* logits, T* row_losses, std::uint8_t* hits,
                               bool gradient, step_state* state) {
  const row_block block = state->block;
  const std::int32_t* const labels = state->labels;
  const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp;
  const unsigned lane = threadIdx.x % warp;
  if (i >= rows) return;
  T* const z = logits + i * classes;
  const bool valid = i < block.valid;
  const std::int32_t label = valid ? labels[i] : -1;
  if (label < 0 || static_cast<std::size_t>(label) >= classes) {
    if (lane == 0) {
      if (valid) note_first(state->progress.bad_label, block.first_row + i);
      row_losses[i] = 0;
      hits[i] = 0;
    }
    if (gradient)
      for (std::size_t c = lane; c < classes; c += warp) z[c] = T(0);
    return;
  }
  top_value<T> top{static_cast<T>(-INFINITY), classes};
  for (std::size_t c = lane; c < classes; c += warp) top = top.best_of({z[c], c});
  for (unsigned distance = warp / 2; distance > 0; distance /= 2)
    top = top.best_of(
        {__shfl_xor_sync(whole_warp, top.value, distance), __shfl_xor_sync(whole_warp, top.index, distance)});
  T sum = 0;
  for (std::size_t c = lane; c < classes; c += warp) sum += exp(z[c] - top.value);
  sum = warp_sum(sum);
  const T at_label = z[label];
  __syncwarp();
  if (lane == 0) {
    const T loss = log(sum) + top.value - at_label;
    if (!isfinite(loss)) note_first(state->progress.bad_loss, block.first_row + i);
    row_losses[i] = loss;
    hits[i] = top.index == static_cast<std::size_t>(label);
  }
  if (!gradient) return;
  const T scale = T(1) / sum;
  for (std::size_t c = lane; c < classes; c += warp) {
    const T p = exp(z[c] - top.value) * scale;
    z[c] = c == static_cast<std::size_t>(label) ? p - T(1) : p;
  }
}

/// One block: sums of losses and hits in a fixed order.
template <class T>
__global__ void metrics_kernel(const T* row_losses, const std::uint8_t* hits, bool gradient, step_state* state) {
  const row_block block = state->block;
  double loss = 0;
  unsigned long long correct = 0;
  for (std::size_t i = threadIdx.x; i < block.valid; i += block_threads) {
    loss += static_cast<double>(row_losses[i]);
    correct += hits[i];
  }
  loss = block_sum(loss);
  correct = block_sum(correct);
  if (threadIdx.x != 0) return;
  metrics& sums = state->progress.running;
  sums.loss_sum += loss;
  sums.correct += correct;
  sums.rows += block.valid;
  if (gradient) state->rows_in_step += block.valid;
}

}  // namespace

template <class T>
void take(cudaStream_t stream, const row_block& block, std::size_t columns, const T* x, const std::int32_t* labels,
          const T* mean, const T* scale, T* out, step_state* state) {
  const dim3 grid(
      static_cast<unsigned>(std::clamp<std::size_t>((columns + block_threads - 1) / block_threads, 1, 65535)),
      static_cast<unsigned>(std::min<std::size_t>(block.rows, 65535)));
  take_kernel<<<grid, block_threads, 0, stream>>>(block, columns, x, labels, mean, scale, out, state);
  check(cudaGetLastError(), "launching the normalisation of inputs");
}

template <class T>
void softmax_cross_entropy(cudaStream_t stream, std::size_t rows, std::size_t classes, T* logits, T* row_losses,
                           bool gradient, step_state* state) {
  auto* const hits = reinterpret_cast<std::uint8_t*>(row_losses + rows);
  const unsigned rows_per_block = block_threads / warp;
  const auto blocks = static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
  softmax_kernel<<<blocks, block_threads, 0, stream>>>(rows, classes, logits, row_losses, hits, gradient, state);
  check(cudaGetLastError(), "launching the loss");
  metrics_kernel<<<1, block_threads, 0, stream>>>(row_losses, hits, gradient, state);
  check(cudaGetLastError(), "launching the sums of the loss");
}

#define PENSTOCK_INSTANTIATE(T)                                                                                      \
  template void take(cudaStream_t, const row_block&, std::size_t, const T*, const std::int32_t*, const T*, const T*, \
                     T*, step_state*);                                                                               \
  template void softmax_cross_entropy(cudaStream_t, std::size_t, std::size_t, T*, T*, bool, step_state*);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train::cuda
