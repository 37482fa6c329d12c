#include "gather_convert.cuh"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {

void launch_to_float(const kernel_launch& how, const gather_plan& plan) {
  if (plan.to == type::float64) return launch_to<double>(how, plan);
  return launch_to<float>(how, plan);
}

}  // namespace penstock::gpu::cuda
