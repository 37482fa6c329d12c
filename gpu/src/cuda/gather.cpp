#include "../cuda_backend.hpp"
#include "call.hpp"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {
namespace {

void launch(const kernel_launch& how, const gather_plan& plan) {
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

kernel_graphs* create_kernel_graphs() { return new kernel_graphs; }
void destroy(kernel_graphs* graphs) noexcept { delete graphs; }

void gather(stream_ref stream, const gather_plan& plan, kernel_graphs& graphs) {
  const caller call(stream.device().ordinal(), stream.faults());
  launch({call, stream.native(), graphs, plan.count * plan.target_row_bytes}, plan);
}

}  // namespace penstock::gpu::cuda
