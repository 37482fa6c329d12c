#include <penstock/gpu/error.hpp>

#include <cuda_runtime.h>

#include <string>

#include "spin.hpp"

namespace penstock::test {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(const volatile std::uint32_t* gate, std::uint32_t* mark, std::uint32_t value) {
  constexpr std::uint64_t patience = 30'000'000'000;
  const std::uint64_t start = nanoseconds();
  while (*gate == 0)
    if (nanoseconds() - start > patience) return;
  *mark = value;
}

}  // namespace

void spin_until(gpu::stream_ref stream, const std::uint32_t* gate, std::uint32_t* mark, std::uint32_t value) {
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(stream.device().ordinal());
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream.native();
  const cudaError_t code = cudaLaunchKernelEx(&config, spin, gate, mark, value);
  cudaSetDevice(previous);
  if (code != cudaSuccess)
    throw gpu::error(std::string("a spinning kernel was not launched: ") + cudaGetErrorString(code), code);
}

}  // namespace penstock::test
