#pragma once

#include "update_parameters.hpp"

#include <penstock/gpu/stream.hpp>

namespace penstock::train {

/// The rule on each parameter, in the order of `stream`, on the caller's TBB arena.
template <class Rule, class S, class T>
void for_each_parameter(gpu::stream_ref, const step_state* state, const updated_arrays<S, T>& arrays,
                        const Rule& rule) {
  host::update_parameters(*state, arrays, rule);
}

}  // namespace penstock::train
