#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "checksum_cuda.hpp"

namespace examples {
namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned vectors_per_thread = 4;

/// Adds the sums of a block's threads to `total`.
__device__ void add_block_sum(unsigned long long sum, unsigned long long* total) {
  __shared__ unsigned long long warp_sums[threads_per_block / 32];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < threads_per_block / 32; ++warp) sum += warp_sums[warp];
  atomicAdd(total, sum);
}

/// Rows of whole words at a multiple of 16 bytes: four words a load.
__global__ void sum_vectors(const uint4* vectors, std::uint64_t count, const std::uint32_t* rest, unsigned rest_words,
                            unsigned long long* total) {
  const std::uint64_t first = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  const std::uint64_t stride = gridDim.x * std::uint64_t{blockDim.x};
  unsigned long long sum = first < rest_words ? rest[first] : 0;
#pragma unroll 4
  for (std::uint64_t i = first; i < count; i += stride) {
    const uint4 v = __ldcs(vectors + i);
    sum += (static_cast<unsigned long long>(v.x) + v.y) + (static_cast<unsigned long long>(v.z) + v.w);
  }
  add_block_sum(sum, total);
}

/// Any rows: a byte counts by its place in its word.
__global__ void sum_bytes(const unsigned char* bytes, std::uint64_t count, std::uint64_t row_bytes,
                          unsigned long long* total) {
  const std::uint64_t stride = gridDim.x * std::uint64_t{blockDim.x};
  unsigned long long sum = 0;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += stride)
    sum += static_cast<unsigned long long>(bytes[i]) << (8 * (i % row_bytes % 4));
  add_block_sum(sum, total);
}

unsigned blocks_for(std::uint64_t items) {
  constexpr std::uint64_t most = 1024;  // enough to fill the largest devices
  return static_cast<unsigned>(std::clamp<std::uint64_t>(items / (threads_per_block * vectors_per_thread), 1, most));
}

}  // namespace

void add_checksum_on_cuda(penstock::gpu::stream_ref stream, const row_bytes_view& rows, std::uint64_t* total) {
  const std::uint64_t bytes = std::uint64_t{rows.rows} * rows.row_bytes;
  auto* const sum = reinterpret_cast<unsigned long long*>(total);
  if (rows.row_bytes % 4 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0) {
    const std::uint64_t vectors = bytes / 16;
    const auto* const rest = reinterpret_cast<const std::uint32_t*>(rows.data + vectors * 16);
    sum_vectors<<<blocks_for(vectors), threads_per_block, 0, stream.native()>>>(
        reinterpret_cast<const uint4*>(rows.data), vectors, rest, static_cast<unsigned>(bytes % 16 / 4), sum);
  } else {
    sum_bytes<<<blocks_for(bytes), threads_per_block, 0, stream.native()>>>(
        reinterpret_cast<const unsigned char*>(rows.data), bytes, rows.row_bytes, sum);
  }
  if (const cudaError_t failure = cudaGetLastError(); failure != cudaSuccess)
    throw std::runtime_error(std::string("the checksum kernel could not be launched: ") + cudaGetErrorString(failure));
}

}  // namespace examples
