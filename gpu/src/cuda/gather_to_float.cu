#include "gather_convert.cuh"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {

cudaError_t launch_to_float(cudaStream_t stream, const gather_plan& plan) {
  if (plan.to == type::float64) return launch_to<double>(stream, plan);
  return launch_to<float>(stream, plan);
}

}  // namespace penstock::gpu::cuda
