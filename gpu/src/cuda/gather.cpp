#include "../cuda_backend.hpp"
#include "call.hpp"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {
namespace {

cudaError_t launch(cudaStream_t stream, const gather_plan& plan) {
  if (plan.is_raw()) return launch_raw(stream, plan);
  switch (plan.to) {
    case type::float32:
    case type::float64: return launch_to_float(stream, plan);
    case type::float16:
    case type::bfloat16: return launch_to_half(stream, plan);
    default: return launch_to_integer(stream, plan);
  }
}

}  // namespace

void gather(stream_ref stream, const gather_plan& plan) {
  const caller call(stream.device().ordinal(), stream.faults());
  call(
      "cudaLaunchKernel", [&] { return launch(stream.native(), plan); }, plan.count * plan.target_row_bytes);
}

}  // namespace penstock::gpu::cuda
