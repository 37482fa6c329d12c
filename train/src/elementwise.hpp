#pragma once

#include "step_state.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/model.hpp>
#include <penstock/train/optimizer.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// The optimizer over all parameters in one launch, after begin_update(); `first` and `second` are null where the
/// optimizer keeps no such moment. Changes nothing where the state is blocked.
template <class T>
void optimizer_step(gpu::stream_ref stream, const optimizer_options& optimizer, const step_state* state,
                    std::size_t count, T* parameters, const T* gradients, T* first, T* second);

/// What decides which values are dropped.
struct drop_key {
  const step_state* state;
  std::uint64_t seed;
  std::uint64_t layer;
  double probability;
};

/// to[i] = from[i] / (1 - probability), or 0 where it is dropped; `width` values a row.
template <class T>
void drop(gpu::stream_ref stream, const drop_key& key, std::size_t width, std::size_t count, const T* from, T* to);

/// values[i] = activation(values[i]).
template <class T>
void activate(gpu::stream_ref stream, activation kind, std::size_t count, T* values);

}  // namespace penstock::train
