#pragma once

#include <cuda_runtime_api.h>

#include "../gather_plan.hpp"
#include "kernel_launch.hpp"

namespace penstock::gpu::cuda {

/// Launch the kernel for a plan; each source of kernels holds some targets, so that they compile side by side.
void launch_raw(const kernel_launch& how, const gather_plan& plan);
void launch_to_float(const kernel_launch& how, const gather_plan& plan);    // float32, float64
void launch_to_half(const kernel_launch& how, const gather_plan& plan);     // float16, bfloat16
void launch_to_integer(const kernel_launch& how, const gather_plan& plan);  // int32, int64, uint8

}  // namespace penstock::gpu::cuda
