#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::train::cuda {

/// A product as cuBLASLt sees it, with what algorithms for it may take and count on.
struct algorithm_request {
  cublasLtHandle_t lt = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;  // its A, B, and C = D
  std::uint32_t align_a = 1, align_b = 1, align_out = 1;           // bytes that the addresses are multiples of
  std::size_t workspace_bytes = 0;
  std::size_t most_parts_bytes = 0;  // where the depth is split, of the sums of the parts
};

/// Algorithms in the order in which they are to be tried; none where cuBLASLt has none. What it offers, and says that
/// it can do, it may yet refuse where it is run. The same request gets the same answer on the same card and version of
/// the library: nothing is timed. Sums of parts of the depth are added in a fixed order, so that bits repeat.
std::vector<cublasLtMatmulAlgo_t> algorithms_for(const algorithm_request& request);

}  // namespace penstock::train::cuda
