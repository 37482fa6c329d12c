#pragma once

#include "check.hpp"
#include "lanes.hpp"

#include <penstock/gpu/stream.hpp>

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>

namespace penstock::train {

namespace cuda {

inline constexpr unsigned row_threads = 256;

/// One warp for each row.
template <class F>
__global__ void for_each_row_kernel(std::size_t count, F f) {
  const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp_lanes::size;
  if (i < count) f(warp_lanes{}, i);
}

}  // namespace cuda

/// f(lanes, i) for rows i < count, in the order of `stream`; on the host device on the caller's TBB arena. Does not
/// block on CUDA.
template <class F>
void for_each_row(gpu::stream_ref stream, std::size_t count, F f) {
  if (stream.device().is_cuda()) {
    constexpr std::size_t rows_per_block = cuda::row_threads / cuda::warp_lanes::size;
    const auto blocks = static_cast<unsigned>((count + rows_per_block - 1) / rows_per_block);
    cuda::for_each_row_kernel<<<blocks, cuda::row_threads, 0, stream.native()>>>(count, f);
    return cuda::check(cudaGetLastError(), "launching row-wise work");
  }
  constexpr std::size_t tile_rows = 16;
  tbb::parallel_for(std::size_t{0}, (count + tile_rows - 1) / tile_rows, [&](std::size_t tile) {
    const std::size_t last = std::min(count, (tile + 1) * tile_rows);
    for (std::size_t i = tile * tile_rows; i < last; ++i) f(one_lane{}, i);
  });
}

}  // namespace penstock::train
