#pragma once

#include "../backend.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

namespace penstock::train::cuda {

/// Throws gpu::error where the device has no tensor cores for `arithmetic`.
void require_tensor_cores(gpu::device d, precision arithmetic);

/// Matrix products through cuBLASLt with a workspace of the plan's. The algorithm of each shape is chosen once, among
/// those that give the same bits every time; descriptors are made then, and later calls allocate nothing.
template <class S>
class products {
 public:
  products(std::span<std::byte> workspace, precision arithmetic);
  products(products&&) noexcept;
  ~products();
  /// c and bias are of type S, or for what.gradient in its arithmetic.
  void multiply(cudaStream_t stream, const product& what, const S* a, const S* b, void* c, const S* bias);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::train::cuda
