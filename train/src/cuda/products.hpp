#pragma once

#include "../backend.hpp"
#include "chosen_algorithms.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train::cuda {

/// Throws gpu::error where the device has no tensor cores for `arithmetic`.
void require_tensor_cores(gpu::device d, precision arithmetic);
/// The same for a card of this name and major compute capability.
void require_tensor_cores(std::string_view card, int major, precision arithmetic);

/// The card and the library's version, on which the bits of a product depend beside its algorithm.
std::string products_of(gpu::device d);

/// Matrix products through cuBLASLt with a workspace of the plan's. The algorithm of each shape is chosen once, among
/// those that give the same bits every time; descriptors are made then, and later calls allocate nothing.
template <class S>
class products {
 public:
  products(std::span<std::byte> workspace, precision arithmetic);
  products(products&&) noexcept;
  ~products();
  /// c and bias are of type S, or for what.gradient in its arithmetic. `bias` is written where what.sums.
  void multiply(cudaStream_t stream, const product& what, const S* a, const S* b, void* c, const void* bias);
  /// Whether cuBLASLt has an algorithm for such a product.
  bool offers(const product& what, const S* a, const S* b, void* c, const void* bias);

  /// What was chosen so far, and what choose() has taken.
  std::vector<chosen_algorithm> chosen() const;
  /// From now on products have these algorithms, as far as they fit the workspace, and others are chosen afresh. Those
  /// that are taken are among chosen() at once. Gives what is not taken.
  left_algorithms choose(const std::vector<chosen_algorithm>& chosen);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::train::cuda
