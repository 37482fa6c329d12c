#pragma once

#include "update_rules.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/optimizer.hpp>

namespace penstock::train {

/// The optimizer over all parameters in one launch, after begin_update(). Changes nothing where the state is blocked.
/// Arrays lie at multiples of 16 bytes, `rounded` of 8.
template <class S, class T>
void optimizer_step(gpu::stream_ref stream, const optimizer_options& optimizer, const step_state* state,
                    const updated_arrays<S, T>& arrays);

}  // namespace penstock::train
