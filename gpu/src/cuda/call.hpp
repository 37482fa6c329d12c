#pragma once

#include <cuda_runtime_api.h>
#include <penstock/fault.hpp>

#include <cstddef>
#include <source_location>

#include "../injected_fault.hpp"

namespace penstock::gpu::cuda {

/// The name of a CUDA call and where it is made.
struct call_site {
  // Implicit, so that a call's name alone brings its place along.
  call_site(const char* call, std::source_location place = std::source_location::current())
      : name(call), where(place) {}
  const char* name;
  std::source_location where;
};

/// Throws gpu::error that names the call, the device, what CUDA says and the place.
[[noreturn]] void fail(const call_site& site, int ordinal, cudaError_t code);

/// Makes CUDA calls for one device, which is current on this thread while the caller lives; the device that was current
/// before is current again afterwards. Asks the seam before each call and checks its result: the only place that does.
class caller {
 public:
  explicit caller(int ordinal, fault_injector* faults = nullptr);
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;
  ~caller();

  /// Throws gpu::error unless `call()` gives cudaSuccess.
  template <class Call>
  void operator()(const call_site& site, Call&& call, std::size_t bytes = 0) const {
    const cudaError_t code = result_of(site, call, bytes);
    if (code != cudaSuccess) fail(site, ordinal_, code);
  }
  /// What `call()` gives, or the error that the seam wants in its place.
  template <class Call>
  cudaError_t result_of(const call_site& site, Call&& call, std::size_t bytes = 0) const {
    const int injected = injected_error(faults_, fault_site::cuda_call, site.name, bytes);
    return injected != 0 ? static_cast<cudaError_t>(injected) : call();
  }

 private:
  int ordinal_;
  int previous_ = 0;
  fault_injector* faults_;
};

}  // namespace penstock::gpu::cuda
