#include "check.hpp"
#include "kernels.hpp"
#include "note_input.hpp"
#include "values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock::train::cuda {
namespace {

constexpr unsigned warp = 32;
constexpr unsigned block_threads = 256;
constexpr unsigned whole_warp = 0xffffffffu;

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

/// Loads what is read once: it need not push other data out of the cache.
__device__ values<float, 4> load_once(const values<float, 4>* from) {
  const float4 v = __ldcs(reinterpret_cast<const float4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ values<double, 2> load_once(const values<double, 2>* from) {
  const double2 v = __ldcs(reinterpret_cast<const double2*>(from));
  return {{v.x, v.y}};
}
template <class V>
__device__ values<V, 1> load_once(const values<V, 1>* from) {
  return {{__ldcs(from->at)}};
}

/// Rows whose loads a thread has in flight at once.
constexpr unsigned depth = 4;

/// A thread goes down `Width` columns, whose mean and scale it keeps: x counts columns, y rows, and blockIdx.z inputs.
/// One thread notes the pass for the kernels that follow, whose launches are recorded and so cannot be told.
template <class S, unsigned Width>
__global__ void take_kernel(const __grid_constant__ intake<S> what) {
  using T = arithmetic<S>;
  using taken = values<T, Width>;
  using given = values<S, Width>;
  const taken_rows<T>& rows = what.rows;
  const row_block& block = rows.block;
  const bool second = blockIdx.z != 0;
  const std::size_t units = what.columns / Width, unit = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t first_row = std::size_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (unit == 0 && first_row == 0 && !second) {
    what.state->block = block;
    what.state->targets = rows.targets;
    what.state->weights = rows.weights;
    what.state->learning_rate = rows.learning_rate;
  }
  if (unit >= units) return;
  const taken* const x = reinterpret_cast<const taken*>(second ? rows.x2 : rows.x) + unit;
  given* const out = reinterpret_cast<given*>(what.out + (second ? block.rows * what.columns : 0)) + unit;
  const taken mean = reinterpret_cast<const taken*>(what.mean)[unit];
  const taken scale = reinterpret_cast<const taken*>(what.scale)[unit];
  const std::size_t step = std::size_t{gridDim.y} * blockDim.y;
  for (std::size_t first = first_row; first < block.rows; first += depth * step) {
    taken in[depth];
    bool counted[depth];
#pragma unroll
    for (unsigned d = 0; d < depth; ++d) {
      const std::size_t i = first + d * step;
      counted[d] = i < block.valid && (rows.weights == nullptr || rows.weights[i] != T(0));
      if (counted[d]) in[d] = load_once(x + i * units);
    }
#pragma unroll
    for (unsigned d = 0; d < depth; ++d) {
      const std::size_t i = first + d * step;
      if (i >= block.rows) break;
      given to;
      bool bad = false;
#pragma unroll
      for (unsigned e = 0; e < Width; ++e) {
        const T value = counted[d] ? (in[d].at[e] - mean.at[e]) * scale.at[e] : T(0);
        bad = bad || !isfinite(value);
        to.at[e] = static_cast<S>(value);
      }
      out[i * units] = to;
      if (bad)
        note_input(what.state->progress.bad_input, block.first_row + i + (second ? progress::of_second_input : 0));
    }
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
  constexpr unsigned wide = 16 / sizeof(T);
  // Enough to keep a large device busy: from there on, threads take several rows each, which are in flight together.
  constexpr std::size_t good_blocks = 256;
  const bool in_wide = is_wide(wide);
  const std::size_t units = what_.columns / (in_wide ? wide : 1), rows = what_.rows.block.rows;
  const unsigned across = static_cast<unsigned>(std::bit_ceil(std::min<std::size_t>(units, block_threads)));
  const unsigned down = block_threads / across;
  const std::size_t tiles = (units + across - 1) / across;
  cudaKernelNodeParams launch{};
  launch.func = in_wide ? reinterpret_cast<void*>(&take_kernel<S, wide>) : reinterpret_cast<void*>(&take_kernel<S, 1>);
  launch.gridDim = dim3(static_cast<unsigned>(tiles),
                        static_cast<unsigned>(std::clamp<std::size_t>((rows + down - 1) / down, 1,
                                                                      std::max<std::size_t>(good_blocks / tiles, 1))),
                        what_.rows.x2 != nullptr ? 2 : 1);
  launch.blockDim = dim3(across, down);
  launch.kernelParams = &argument_;
  return launch;
}

/// Whether so many values of a row, anywhere, can be loaded and stored at once.
template <class S>
bool take_launch<S>::is_wide(std::size_t width) const noexcept {
  const std::size_t in = width * sizeof(T);
  return what_.columns % width == 0 && cuda::is_aligned(what_.rows.x, in) && cuda::is_aligned(what_.rows.x2, in) &&
         cuda::is_aligned(what_.mean, in) && cuda::is_aligned(what_.scale, in) &&
         cuda::is_aligned(what_.out, width * sizeof(S));
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
