#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "../convert.hpp"
#include "../gather_plan.hpp"
#include "kernel_launch.hpp"

namespace penstock::gpu::cuda {

/// Bytes that one instruction loads or stores.
template <unsigned Bytes>
struct carrier_of;
template <>
struct carrier_of<1> {
  using type = std::uint8_t;
};
template <>
struct carrier_of<2> {
  using type = std::uint16_t;
};
template <>
struct carrier_of<4> {
  using type = std::uint32_t;
};
template <>
struct carrier_of<8> {
  using type = uint2;
};
template <>
struct carrier_of<16> {
  using type = uint4;
};
template <>
struct carrier_of<32> {
  using type = struct alignas(16) {
    uint4 low, high;
  };
};
template <class T, unsigned Width>
using carrier = typename carrier_of<sizeof(T) * Width>::type;

template <class T, unsigned Width>
struct elements_of {
  T value[Width];
};

/// Loads what is read once, and stores what is not read soon: it need not push other data out of the cache.
template <class V>
__device__ V load_once(const V* from) {
  if constexpr (sizeof(V) == 32) {
    V v;
    v.low = __ldcs(&from->low), v.high = __ldcs(&from->high);
    return v;
  } else {
    return __ldcs(from);
  }
}
template <class V>
__device__ void store_away(V* to, const V& v) {
  if constexpr (sizeof(V) == 32)
    __stcs(&to->low, v.low), __stcs(&to->high, v.high);
  else
    __stcs(to, v);
}

/// Units, of some elements each, that a thread holds in registers at once: many loads in flight hide the memory's
/// latency.
inline constexpr unsigned depth = 8;

/// How the units of all rows are dealt to threads. A group of threads (a power of two up to a warp) takes a tile, the
/// part of a row that it can hold at once, so that row and draw are worked out once per tile and not per element.
struct tiling {
  std::uint64_t row_units;
  std::uint64_t row_tiles;
  std::uint64_t tiles;
  unsigned group_bits;  // the group has 2^group_bits threads
};

inline tiling tile(const gather_plan& plan, unsigned width) {
  tiling t{};
  t.row_units = plan.elements / width;
  while (t.group_bits < 5 && (std::uint64_t{1} << t.group_bits) < t.row_units) ++t.group_bits;
  const std::uint64_t tile_units = std::uint64_t{depth} << t.group_bits;
  t.row_tiles = (t.row_units + tile_units - 1) / tile_units;
  t.tiles = t.row_tiles * plan.count;
  return t;
}

/// Moves `Width` elements at a time through `each`. Width elements of either side are one carrier, to whose alignment
/// all addresses keep; row_units * Width elements make a row.
template <class From, class To, unsigned Width, class Each>
__global__ void move_rows(const __grid_constant__ gather_plan plan, const __grid_constant__ tiling tiles,
                          const __grid_constant__ Each each) {
  using in_unit = carrier<From, Width>;
  using out_unit = carrier<To, Width>;
  const unsigned group = 1U << tiles.group_bits;
  const unsigned lane = threadIdx.x & (group - 1);
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t stride = (std::uint64_t{gridDim.x} * blockDim.x) >> tiles.group_bits;

  for (std::uint64_t t = thread >> tiles.group_bits; t < tiles.tiles; t += stride) {
    const std::uint64_t row = tiles.row_tiles == 1 ? t : quotient(t, tiles.row_tiles);
    const std::uint64_t first = (t - row * tiles.row_tiles) * (std::uint64_t{depth} << tiles.group_bits);
    const std::uint64_t left = tiles.row_units - first;
    const unsigned units = left < depth * group ? static_cast<unsigned>(left) : depth * group;
    const in_unit* from = reinterpret_cast<const in_unit*>(plan.source_row(row)) + first;
    out_unit* to = reinterpret_cast<out_unit*>(plan.target_row(row)) + first;

    in_unit held[depth];
#pragma unroll
    for (unsigned d = 0; d < depth; ++d)
      if (d * group + lane < units) held[d] = load_once(from + (d * group + lane));
#pragma unroll
    for (unsigned d = 0; d < depth; ++d) {
      if (d * group + lane < units) {
        const auto in = convert::bits_as<elements_of<From, Width>>(held[d]);
        elements_of<To, Width> out;
#pragma unroll
        for (unsigned e = 0; e < Width; ++e) out.value[e] = each(in.value[e]);
        store_away(to + (d * group + lane), convert::bits_as<out_unit>(out));
      }
    }
  }
}

template <class From, class To, unsigned Width, class Each>
void launch_move(const kernel_launch& how, const gather_plan& plan, const Each& each) {
  constexpr unsigned block_threads = 256;
  constexpr std::uint64_t most_blocks = std::uint64_t{1} << 20;  // the kernel goes on where the grid ends
  const tiling tiles = tile(plan, Width);
  const std::uint64_t threads = tiles.tiles << tiles.group_bits;
  const std::uint64_t blocks = std::min((threads + block_threads - 1) / block_threads, most_blocks);
  const void* arguments[] = {&plan, &tiles, &each};
  return how(reinterpret_cast<const void*>(&move_rows<From, To, Width, Each>), static_cast<unsigned>(blocks),
             block_threads, const_cast<void**>(arguments));
}

/// The greatest power of two, up to 16, that divides all of them.
inline unsigned common_alignment(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t bits = a | b | c | 16;
  return static_cast<unsigned>(bits & (~bits + 1));
}

inline unsigned source_alignment(const gather_plan& plan) {
  return common_alignment(reinterpret_cast<std::uintptr_t>(plan.source), plan.image_bytes, plan.source_row_bytes);
}

inline unsigned target_alignment(const gather_plan& plan) {
  return common_alignment(reinterpret_cast<std::uintptr_t>(plan.target), plan.target_row_bytes, 0);
}

}  // namespace penstock::gpu::cuda
