#include "../cuda_backend.hpp"
#include "call.hpp"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {
namespace {

cudaError_t launch(kernel_launch& how, const gather_plan& plan) {
  if (plan.is_raw()) return launch_raw(how, plan);
  switch (plan.to) {
    case type::float32:
    case type::float64: return launch_to_float(how, plan);
    case type::float16:
    case type::bfloat16: return launch_to_half(how, plan);
    default: return launch_to_integer(how, plan);
  }
}

}  // namespace

void gather(stream_ref stream, const gather_plan& plan) {
  const caller call(stream.device().ordinal(), stream.faults());
  plain_launch how(stream.native());
  call(
      "cudaLaunchKernel", [&] { return launch(how, plan); }, plan.count * plan.target_row_bytes);
}

kernel_graphs* create_kernel_graphs() { return new kernel_graphs; }
void destroy(kernel_graphs* graphs) noexcept { delete graphs; }

void gather(stream_ref stream, const gather_plan& plan, kernel_graphs& graphs) {
  const caller call(stream.device().ordinal(), stream.faults());
  graph_launch how(stream.native(), graphs);
  call(
      "cudaGraphLaunch", [&] { return launch(how, plan); }, plan.count * plan.target_row_bytes);
}

}  // namespace penstock::gpu::cuda
