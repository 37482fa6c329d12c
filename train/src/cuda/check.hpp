#pragma once

#include <penstock/gpu/stream.hpp>

#include <cuda_runtime_api.h>

namespace penstock::train::cuda {

/// Throws gpu::error that says what was tried and what CUDA says, unless `code` is cudaSuccess.
void check(cudaError_t code, const char* what);

/// The error that the stream's seam wants in place of a call, which takes longer where it wants that; 0 for none.
int injected_error(gpu::stream_ref stream, const char* call_name);

/// What `call()` gives, or the error that the stream's seam wants in its place.
template <class Call>
cudaError_t result_of(gpu::stream_ref stream, const char* call_name, Call&& call) {
  const int injected = injected_error(stream, call_name);
  return injected != 0 ? static_cast<cudaError_t>(injected) : call();
}

/// Makes a device current on this thread while it lives.
class current_device {
 public:
  explicit current_device(int ordinal);
  ~current_device();
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int previous_ = 0;
};

}  // namespace penstock::train::cuda
