#pragma once

#include <penstock/gpu/stream.hpp>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/tbb/execution_policy.h>

#include <cstddef>

namespace penstock::train {

/// f(i) for i < count, in the order of `stream`. The build without CUDA: on the caller's TBB arena.
template <class F>
void for_each_index(gpu::stream_ref, std::size_t count, F f) {
  thrust::for_each_n(thrust::tbb::par, thrust::counting_iterator<std::size_t>(0), count, f);
}

}  // namespace penstock::train
