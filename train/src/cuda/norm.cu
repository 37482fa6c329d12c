#include "check.hpp"
#include "kernels.hpp"

namespace penstock::train::cuda {
namespace {

constexpr unsigned threads = 256;

/// The sum over the block's threads, in thread 0; the same order every time.
__device__ double sum_of_threads(double value) {
  __shared__ double values[threads];
  values[threadIdx.x] = value;
  for (unsigned distance = threads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x < distance) values[threadIdx.x] += values[threadIdx.x + distance];
  }
  return values[0];
}

/// One piece for each block.
template <class T>
__global__ void square_kernel(std::size_t count, const T* gradients, double* piece_sums) {
  double sum = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * threads)
    sum += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
  sum = sum_of_threads(sum);
  if (threadIdx.x == 0) piece_sums[blockIdx.x] = sum;
}

__global__ void add_kernel(const double* piece_sums, step_state* state) {
  static_assert(norm_pieces == threads);
  const double sum = sum_of_threads(piece_sums[threadIdx.x]);
  if (threadIdx.x == 0) state->gradient_squares = sum;
}

}  // namespace

template <class T>
void square_gradients(cudaStream_t stream, std::size_t count, const T* gradients, double* piece_sums,
                      step_state* state) {
  square_kernel<<<static_cast<unsigned>(norm_pieces), threads, 0, stream>>>(count, gradients, piece_sums);
  check(cudaGetLastError(), "launching the norm of the gradient");
  add_kernel<<<1, threads, 0, stream>>>(piece_sums, state);
  check(cudaGetLastError(), "launching the norm of the gradient");
}

template void square_gradients(cudaStream_t, std::size_t, const float*, double*, step_state*);
template void square_gradients(cudaStream_t, std::size_t, const double*, double*, step_state*);

}  // namespace penstock::train::cuda
