// For a libtorch without CUDA, as Debian's.

#include "torch_device.hpp"

#include <stdexcept>

namespace examples {

torch::Device torch_device(penstock::gpu::device device) {
  if (device.is_host()) return torch::Device(torch::kCPU);
  throw std::runtime_error(device.name() +
                           ": this libtorch has no CUDA; take --device host, or build with one that has (README.md)");
}

std::optional<penstock::gpu::stream_ref> current_stream(penstock::gpu::device) { return std::nullopt; }

void cap_torch_memory(penstock::gpu::device, std::size_t) {}

std::size_t most_torch_bytes(penstock::gpu::device) { return 0; }

}  // namespace examples
