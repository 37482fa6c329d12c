#pragma once

#include "element.hpp"
#include "step_state.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/model.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// to[i] = from[i], rounded.
template <class S>
void round_values(gpu::stream_ref stream, std::size_t count, const arithmetic<S>* from, S* to);

/// What decides which values are dropped.
struct drop_key {
  const step_state* state;
  std::uint64_t seed;
  std::uint64_t layer;
  double probability;
};

/// to[i] = from[i] / (1 - probability), or 0 where it is dropped; `width` values a row.
template <class S>
void drop(gpu::stream_ref stream, const drop_key& key, std::size_t width, std::size_t count, const S* from, S* to);

/// y[i] = activation(x[i]), which may be in place; dx[i] = dy[i] times its derivative.
template <class S>
void activate(gpu::stream_ref stream, activation kind, std::size_t count, const S* x, S* y);
template <class S>
void activate_gradient(gpu::stream_ref stream, activation kind, std::size_t count, const S* x, const S* y, const S* dy,
                       S* dx);

}  // namespace penstock::train
