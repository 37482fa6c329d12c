#pragma once

#include <cuda_runtime_api.h>

#include "../gather_plan.hpp"

namespace penstock::gpu::cuda {

/// Launch the kernel for a plan; each source of kernels holds some targets, so that they compile side by side.
cudaError_t launch_raw(cudaStream_t stream, const gather_plan& plan);
cudaError_t launch_to_float(cudaStream_t stream, const gather_plan& plan);    // float32, float64
cudaError_t launch_to_half(cudaStream_t stream, const gather_plan& plan);     // float16, bfloat16
cudaError_t launch_to_integer(cudaStream_t stream, const gather_plan& plan);  // int32, int64, uint8

}  // namespace penstock::gpu::cuda
