#include "check.hpp"

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <thread>

namespace penstock::train::cuda {

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw gpu::error(fmt::format("{} failed: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code)),
                   static_cast<int>(code));
}

int injected_error(gpu::stream_ref stream, const char* call_name) {
  if (stream.faults() == nullptr) return 0;
  const fault wanted = stream.faults()->before(fault_site::cuda_call, call_name, 0, 0);
  if (wanted.delay.count() > 0) std::this_thread::sleep_for(wanted.delay);
  return wanted.error;
}

current_device::current_device(int ordinal) {
  check(cudaGetDevice(&previous_), "asking for the current device");
  if (previous_ != ordinal) check(cudaSetDevice(ordinal), "making a device current");
}

current_device::~current_device() { cudaSetDevice(previous_); }

}  // namespace penstock::train::cuda
