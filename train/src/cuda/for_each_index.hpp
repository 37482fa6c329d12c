#pragma once

#include "check.hpp"

#include <penstock/gpu/stream.hpp>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <cstddef>

namespace penstock::train {

/// f(i) for i < count, in the order of `stream`; on the host device on the caller's TBB arena. Does not block on CUDA.
template <class F>
void for_each_index(gpu::stream_ref stream, std::size_t count, F f) {
  const thrust::counting_iterator<std::size_t> first(0);
  if (stream.device().is_cuda()) {
    thrust::for_each_n(thrust::cuda::par_nosync.on(stream.native()), first, count, f);
    cuda::check(cudaGetLastError(), "launching element-wise work");
  } else {
    thrust::for_each_n(thrust::tbb::par, first, count, f);
  }
}

}  // namespace penstock::train
