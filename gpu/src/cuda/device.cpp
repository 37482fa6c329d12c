#include <penstock/gpu/device.hpp>
#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include "../cuda_backend.hpp"
#include "call.hpp"
#include "free_memory.hpp"

namespace penstock::gpu::cuda {
namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string reason_of(cudaError_t code) {
  if (code == cudaSuccess || code == cudaErrorNoDevice) return "the driver sees none";
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0) return "no driver";
  if (code == cudaErrorInsufficientDriver)
    return fmt::format("the driver is for CUDA {}, older than the {} that this build needs", version(driver),
                       version(CUDART_VERSION));
  return fmt::format("the driver says: {} ({})", cudaGetErrorString(code), cudaGetErrorName(code));
}

}  // namespace

census count_devices() noexcept {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return {devices, {}};
  cudaGetLastError();  // no device is no error
  return {0, reason_of(code)};
}

std::string device_name(int ordinal) {
  cudaDeviceProp properties{};
  // Not through a caller: making a device current makes a context on it, which its name does not need.
  if (const auto code = cudaGetDeviceProperties(&properties, ordinal); code != cudaSuccess)
    fail("cudaGetDeviceProperties", ordinal, code);
  return properties.name;
}

memory_size memory_of(int ordinal) {
  memory_size size;
  const caller call(ordinal);
  call("cudaMemGetInfo", [&] { return cudaMemGetInfo(&size.free_bytes, &size.total_bytes); });
  return size;
}

int roomiest_device(int devices) {
  if (devices == 1) return 0;
  const auto free_bytes = free_memory_of_devices(devices);
  int best = 0;
  for (int ordinal = 1; ordinal < devices; ++ordinal)
    if (free_bytes[static_cast<std::size_t>(ordinal)] > free_bytes[static_cast<std::size_t>(best)]) best = ordinal;
  return best;
}

}  // namespace penstock::gpu::cuda
