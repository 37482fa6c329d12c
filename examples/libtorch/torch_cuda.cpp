// For a libtorch with CUDA.

#include "torch_device.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <stdexcept>

namespace examples {
namespace {

c10::DeviceIndex ordinal_of(penstock::gpu::device device) { return static_cast<c10::DeviceIndex>(device.ordinal()); }

}  // namespace

torch::Device torch_device(penstock::gpu::device device) {
  if (device.is_host()) return torch::Device(torch::kCPU);
  if (c10::cuda::device_count() <= device.ordinal())
    throw std::runtime_error(device.name() + ": libtorch does not see this device; its driver may be too old for it");
  c10::cuda::set_device(ordinal_of(device));
  return {torch::kCUDA, ordinal_of(device)};
}

std::optional<penstock::gpu::stream_ref> current_stream(penstock::gpu::device device) {
  if (device.is_host()) return std::nullopt;
  return penstock::gpu::stream_ref(device, c10::cuda::getCurrentCUDAStream(ordinal_of(device)).stream());
}

void cap_torch_memory(penstock::gpu::device device, std::size_t bytes) {
  if (device.is_host()) return;
  torch::zeros({1}, torch_device(device));  // torch knows its devices once it has used one
  const auto total = static_cast<double>(penstock::gpu::memory_of(device).total_bytes);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(1.0, static_cast<double>(bytes) / total),
                                                     ordinal_of(device));
}

std::size_t most_torch_bytes(penstock::gpu::device device) {
  if (device.is_host()) return 0;
  const auto statistics = c10::cuda::CUDACachingAllocator::getDeviceStats(ordinal_of(device));
  return static_cast<std::size_t>(statistics.reserved_bytes[0].peak);  // 0: of all pools together
}

}  // namespace examples
