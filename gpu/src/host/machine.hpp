#pragma once

#include <penstock/gpu/device.hpp>

namespace penstock::gpu::host {

/// Available and total memory, within the control group's limit.
memory_size memory_of_machine();

}  // namespace penstock::gpu::host
