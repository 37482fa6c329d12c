#pragma once

#include <cuda_runtime_api.h>

namespace penstock::train::cuda {

/// Throws gpu::error that says what was tried and what CUDA says, unless `code` is cudaSuccess.
void check(cudaError_t code, const char* what);

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
