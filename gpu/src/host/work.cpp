#include "work.hpp"

#include <penstock/bytes.hpp>
#include <penstock/gpu/device.hpp>
#include <penstock/gpu/error.hpp>

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "../injected_fault.hpp"

namespace penstock::gpu::host {

void begin(const char* call, fault_injector* faults, std::size_t bytes) {
  if (const int code = injected_error(faults, fault_site::cuda_call, call, bytes))
    throw error(fmt::format("what stands for {} failed on the host with error {}", call, code), code);
}

void* allocate(std::size_t bytes, fault_site site, fault_injector* faults) {
  constexpr std::size_t page = 4_KiB, huge_page = 2_MiB;
  const bool pinned = site == fault_site::allocate_pinned;
  const char* name = pinned ? "pinned slab" : "device slab";
  const std::size_t alignment = bytes < huge_page ? page : huge_page;
  int code = injected_error(faults, site, name, bytes);
  void* address = nullptr;
  if (code == 0) {
    address = std::aligned_alloc(alignment, align_up(bytes, alignment));
    if (address == nullptr) code = errno;
  }
  if (code != 0) {
    const auto free_bytes = memory_of(device::host()).free_bytes;
    throw error(fmt::format("cannot allocate the {} of {} on host: {} ({} are available); lower the {} budget", name,
                            format_bytes(bytes), std::generic_category().message(code), format_bytes(free_bytes),
                            pinned ? "pinned" : "device"),
                code);
  }
  if (alignment == huge_page)
    madvise(address, align_up(bytes, alignment), MADV_HUGEPAGE);  // a wish; no matter if refused
  return address;
}

void free(void* address) noexcept { std::free(address); }

}  // namespace penstock::gpu::host
