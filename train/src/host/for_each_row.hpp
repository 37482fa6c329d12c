#pragma once

#include "one_lane.hpp"

#include <penstock/gpu/stream.hpp>

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>

namespace penstock::train {

/// f(lanes, i) for rows i < count, in the order of `stream`. The build without CUDA: on the caller's TBB arena.
template <class F>
void for_each_row(gpu::stream_ref, std::size_t count, F f) {
  constexpr std::size_t tile_rows = 16;
  tbb::parallel_for(std::size_t{0}, (count + tile_rows - 1) / tile_rows, [&](std::size_t tile) {
    const std::size_t last = std::min(count, (tile + 1) * tile_rows);
    for (std::size_t i = tile * tile_rows; i < last; ++i) f(one_lane{}, i);
  });
}

}  // namespace penstock::train
