#include <penstock/bytes.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/gpu/memory.hpp>

#include <fmt/format.h>

#include <array>
#include <optional>

#include "../cuda_backend.hpp"
#include "../host/memory_node.hpp"
#include "call.hpp"

namespace penstock::gpu::cuda {
namespace {

[[noreturn]] void refuse(const char* slab, int ordinal, std::size_t bytes, cudaError_t code, const std::string& help) {
  cudaGetLastError();
  throw error(fmt::format("cannot allocate the {} of {} for cuda:{}: {} ({}); {}", slab, format_bytes(bytes), ordinal,
                          cudaGetErrorString(code), cudaGetErrorName(code), help),
              code);
}

// An allocation has sites of its own, so that a test can refuse it apart from all other calls.
template <class Call>
cudaError_t allocate(fault_site site, const char* slab, std::size_t bytes, fault_injector* faults, Call call) {
  const int injected = injected_error(faults, site, slab, bytes);
  return injected != 0 ? static_cast<cudaError_t>(injected) : call();
}

/// Where the device is attached; nothing where all memory is as near, or that is not known.
std::optional<int> memory_node_of(int ordinal, const caller& call) {
  std::array<char, 32> address{};
  const auto code = call.result_of("cudaDeviceGetPCIBusId", [&] {
    return cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), ordinal);
  });
  if (code == cudaSuccess) return host::node_of_pci_device(address.data());
  cudaGetLastError();
  return std::nullopt;
}

}  // namespace

void* allocate_device(int ordinal, std::size_t bytes, fault_injector* faults) {
  const caller current(ordinal);
  void* address = nullptr;
  const auto code =
      allocate(fault_site::allocate_device, "device slab", bytes, faults, [&] { return cudaMalloc(&address, bytes); });
  if (code == cudaSuccess) return address;
  memory_size there;
  cudaMemGetInfo(&there.free_bytes, &there.total_bytes);
  refuse("device slab", ordinal, bytes, code,
         fmt::format("{} of {} are free; lower the device budget, or free memory that others hold on it",
                     format_bytes(there.free_bytes), format_bytes(there.total_bytes)));
}

void free_device(void* address) noexcept { cudaFree(address); }

void* allocate_pinned(int ordinal, std::size_t bytes, fault_injector* faults) {
  const caller current(ordinal);
  const host::preferred_node near_the_device(memory_node_of(ordinal, current));
  void* address = nullptr;
  const auto code = allocate(fault_site::allocate_pinned, "pinned slab", bytes, faults,
                             [&] { return cudaHostAlloc(&address, bytes, cudaHostAllocPortable); });
  if (code == cudaSuccess) return address;
  refuse("pinned slab", ordinal, bytes, code,
         fmt::format("{} of host memory are available; lower the pinned budget",
                     format_bytes(gpu::memory_of(device::host()).free_bytes)));
}

void free_pinned(void* address) noexcept { cudaFreeHost(address); }

void copy(stream_ref stream, void* to, const void* from, std::size_t bytes) {
  const caller call(stream.device().ordinal(), stream.faults());
  call(
      "cudaMemcpyAsync", [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.native()); }, bytes);
}

void fill(stream_ref stream, void* to, int value, std::size_t bytes) {
  const caller call(stream.device().ordinal(), stream.faults());
  call(
      "cudaMemsetAsync", [&] { return cudaMemsetAsync(to, value, bytes, stream.native()); }, bytes);
}

}  // namespace penstock::gpu::cuda
