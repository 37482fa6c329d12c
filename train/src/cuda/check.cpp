#include "check.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

namespace penstock::train::cuda {

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw gpu::error(fmt::format("{} failed: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code)),
                   static_cast<int>(code));
}

current_device::current_device(int ordinal) {
  check(cudaGetDevice(&previous_), "asking for the current device");
  if (previous_ != ordinal) check(cudaSetDevice(ordinal), "making a device current");
}

current_device::~current_device() { cudaSetDevice(previous_); }

}  // namespace penstock::train::cuda
