// The optimizers, once for both devices: a build without CUDA compiles this file as C++.
#include "optimizer_step.hpp"

#include "element.hpp"
#include "for_each_parameter.hpp"

namespace penstock::train {

template <class S, class T>
void optimizer_step(gpu::stream_ref stream, const optimizer_options& optimizer, const step_state* state,
                    const updated_arrays<S, T>& arrays) {
  if (const auto* o = std::get_if<sgd>(&optimizer))
    return for_each_parameter(stream, state, arrays,
                              sgd_rule<T>{static_cast<T>(o->momentum), static_cast<T>(o->weight_decay), o->nesterov,
                                          arrays.first != nullptr});
  const auto& o = std::get<adamw>(optimizer);
  for_each_parameter(stream, state, arrays,
                     adamw_rule<T>{static_cast<T>(o.beta1), static_cast<T>(o.beta2), static_cast<T>(o.epsilon),
                                   static_cast<T>(o.weight_decay)});
}

template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*,
                             const updated_arrays<float, float>&);
template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*,
                             const updated_arrays<double, double>&);
template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*,
                             const updated_arrays<bfloat16, float>&);
template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*,
                             const updated_arrays<float16, float>&);

}  // namespace penstock::train
