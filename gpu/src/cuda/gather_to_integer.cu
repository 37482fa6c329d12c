#include "gather_convert.cuh"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {

void launch_to_integer(const kernel_launch& how, const gather_plan& plan) {
  switch (plan.to) {
    case type::int32: return launch_to<std::int32_t>(how, plan);
    case type::int64: return launch_to<std::int64_t>(how, plan);
    default: return launch_to<std::uint8_t>(how, plan);
  }
}

}  // namespace penstock::gpu::cuda
