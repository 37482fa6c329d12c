#include "lt_handles.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

namespace penstock::train::cuda {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw gpu::error(fmt::format("{} failed: cuBLASLt says {}", what, cublasLtGetStatusString(status)));
}

}  // namespace penstock::train::cuda
