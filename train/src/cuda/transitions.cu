#include "check.hpp"
#include "kernels.hpp"

#include "../transitions.hpp"

namespace penstock::train::cuda {
namespace {

__global__ void begin_kernel(update_rule rule, step_state* state) { apply_begin(rule, *state); }
__global__ void discard_kernel(step_state* state) { apply_discard(*state); }
__global__ void reset_kernel(metrics start, bool forgive, step_state* state) { apply_reset(start, forgive, *state); }

}  // namespace

void begin_update(cudaStream_t stream, const update_rule& rule, step_state* state) {
  begin_kernel<<<1, 1, 0, stream>>>(rule, state);
  check(cudaGetLastError(), "launching the start of an update");
}

void discard(cudaStream_t stream, step_state* state) {
  discard_kernel<<<1, 1, 0, stream>>>(state);
  check(cudaGetLastError(), "launching the discard of a step");
}

void reset(cudaStream_t stream, const metrics& start, bool forgive, step_state* state) {
  reset_kernel<<<1, 1, 0, stream>>>(start, forgive, state);
  check(cudaGetLastError(), "launching the reset of metrics");
}

}  // namespace penstock::train::cuda
