#pragma once

#include <cuda_runtime_api.h>

#include "../gather_plan.hpp"
#include "kernel_launch.hpp"

namespace penstock::gpu::cuda {

/// Launch the kernel for a plan; each source of kernels holds some targets, so that they compile side by side.
cudaError_t launch_raw(kernel_launch& how, const gather_plan& plan);
cudaError_t launch_to_float(kernel_launch& how, const gather_plan& plan);    // float32, float64
cudaError_t launch_to_half(kernel_launch& how, const gather_plan& plan);     // float16, bfloat16
cudaError_t launch_to_integer(kernel_launch& how, const gather_plan& plan);  // int32, int64, uint8

}  // namespace penstock::gpu::cuda
