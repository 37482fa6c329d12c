#pragma once

#include <penstock/fault.hpp>

#include <cstddef>

namespace penstock::gpu {
struct gather_plan;
}

/// What the host device does in place of CUDA calls.
namespace penstock::gpu::host {

/// Asks the seam as the CUDA call `call` would be asked; throws gpu::error where it wants a failure.
void begin(const char* call, fault_injector* faults, std::size_t bytes = 0);

/// Page-aligned memory, not initialised; throws gpu::error. Large blocks ask for huge pages.
void* allocate(std::size_t bytes, fault_site site, fault_injector* faults);
void free(void* address) noexcept;

void gather(const gather_plan& plan);

}  // namespace penstock::gpu::host
