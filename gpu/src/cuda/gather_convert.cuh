#pragma once

#include <cuda_runtime.h>

#include "gather_kernel.cuh"

namespace penstock::gpu::cuda {

/// One element on its way. The flags are the same for all threads, so that a branch costs little; a kernel for each
/// would be four times the code.
template <class From, class To>
struct converter {
  convert::affine<From, To> arithmetic;
  bool swapped;
  bool plain;
  __device__ To operator()(From x) const {
    if (swapped) x = convert::byte_swapped(x);
    return plain ? convert::cast<To>(x) : arithmetic(x);
  }
};

template <class From, class To>
void launch_pair(const kernel_launch& how, const gather_plan& plan) {
  using work = typename convert::affine<From, To>::work;
  const converter<From, To> each{{static_cast<work>(plan.arithmetic.scale), static_cast<work>(plan.arithmetic.shift)},
                                 plan.swapped,
                                 plan.arithmetic.is_plain()};
  constexpr unsigned width = 4;
  const bool wide = plan.elements % width == 0 &&
                    source_alignment(plan) % std::min<std::size_t>(16, width * sizeof(From)) == 0 &&
                    target_alignment(plan) % std::min<std::size_t>(16, width * sizeof(To)) == 0;
  return wide ? launch_move<From, To, width>(how, plan, each) : launch_move<From, To, 1>(how, plan, each);
}

/// From every type to `To`.
template <class To>
void launch_to(const kernel_launch& how, const gather_plan& plan) {
  return visit_type(plan.from, [&](auto from) { return launch_pair<decltype(from), To>(how, plan); });
}

}  // namespace penstock::gpu::cuda
