#include <penstock/gpu/error.hpp>

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "stall_on_device.hpp"

namespace penstock::test {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_for(std::uint64_t lasts) {
  const std::uint64_t start = nanoseconds();
  while (nanoseconds() - start < lasts) {
  }
}

}  // namespace

void stall_on_device(gpu::stream_ref stream, std::chrono::microseconds lasts) {
  if (stream.device().is_host() || lasts.count() <= 0) return;
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(stream.device().ordinal());
  spin_for<<<1, 1, 0, stream.native()>>>(static_cast<std::uint64_t>(lasts.count()) * 1000);
  const cudaError_t code = cudaGetLastError();
  cudaSetDevice(previous);
  if (code != cudaSuccess)
    throw gpu::error(std::string("a spinning kernel was not launched: ") + cudaGetErrorString(code), code);
}

}  // namespace penstock::test
