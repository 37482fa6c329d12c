#include "gather_convert.cuh"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {

void launch_to_half(const kernel_launch& how, const gather_plan& plan) {
  if (plan.to == type::float16) return launch_to<float16_t>(how, plan);
  return launch_to<bfloat16_t>(how, plan);
}

}  // namespace penstock::gpu::cuda
