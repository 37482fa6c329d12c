#pragma once

#include <penstock/handle.hpp>

#include <cublasLt.h>

namespace penstock::train::cuda {

template <class Native, cublasStatus_t (*Destroy)(Native)>
struct lt_traits {
  using native_type = Native;
  static Native empty() noexcept { return nullptr; }
  static void release(Native native) noexcept { Destroy(native); }
};

// Owners of what cuBLASLt makes.
using lt_handle = handle<lt_traits<cublasLtHandle_t, cublasLtDestroy>>;
using lt_description = handle<lt_traits<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using lt_layout = handle<lt_traits<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using lt_preference = handle<lt_traits<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

/// Throws gpu::error, with what failed and cuBLASLt's word for why.
void check(cublasStatus_t status, const char* what);

}  // namespace penstock::train::cuda
