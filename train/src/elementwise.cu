// Element-wise work, once for both devices: functors applied through Thrust with the policy of the device. A build
// without CUDA compiles this file as C++.
#include "elementwise.hpp"

#include "activation.hpp"
#include "for_each_index.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>

namespace penstock::train {
namespace {

template <class S>
struct rounded_value {
  const arithmetic<S>* from;
  S* to;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const { to[i] = static_cast<S>(from[i]); }
};

template <class S>
struct dropped_value {
  using T = arithmetic<S>;
  const step_state* state;
  std::uint64_t seed, layer, width, threshold;  // of 2^32: values with fewer random bits are dropped
  T scale;
  const S* from;
  S* to;

  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    using gpu::mix;
    const std::uint64_t element = state->block.first_row * width + i;
    const std::uint64_t bits = mix(mix(mix(mix(seed) + state->progress.steps) + layer) + element);
    to[i] = static_cast<S>((bits >> 32) < threshold ? T(0) : static_cast<T>(from[i]) * scale);
  }
};

template <class S, class F>
struct activated_value {
  using T = arithmetic<S>;
  F f;
  const S* x;
  S* y;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const { y[i] = static_cast<S>(f(static_cast<T>(x[i]))); }
};

template <class S, class F>
struct activated_gradient {
  using T = arithmetic<S>;
  const S *y, *dy;
  S* dx;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    dx[i] = static_cast<S>(F::gradient(static_cast<T>(y[i]), static_cast<T>(dy[i])));
  }
};

template <class S>
struct gelu_gradient {
  using T = arithmetic<S>;
  const S *x, *dy;
  S* dx;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    dx[i] = static_cast<S>(gelu_activation::gradient_at(static_cast<T>(x[i]), static_cast<T>(dy[i])));
  }
};

}  // namespace

template <class S>
void round_values(gpu::stream_ref stream, std::size_t count, const arithmetic<S>* from, S* to) {
  for_each_index(stream, count, rounded_value<S>{from, to});
}

template <class S>
void drop(gpu::stream_ref stream, const drop_key& key, std::size_t width, std::size_t count, const S* from, S* to) {
  const auto threshold = static_cast<std::uint64_t>(key.probability * 4294967296.0);
  for_each_index(stream, count,
                 dropped_value<S>{key.state, key.seed, key.layer, width, threshold,
                                  static_cast<arithmetic<S>>(1 / (1 - key.probability)), from, to});
}

template <class S>
void activate(gpu::stream_ref stream, activation kind, std::size_t count, const S* x, S* y) {
  const auto apply = [&](auto f) { for_each_index(stream, count, activated_value<S, decltype(f)>{f, x, y}); };
  if (kind == activation::gelu) return apply(gelu_activation{});
  visit_activation(kind, apply);
}

template <class S>
void activate_gradient(gpu::stream_ref stream, activation kind, std::size_t count, const S* x, const S* y, const S* dy,
                       S* dx) {
  if (kind == activation::gelu) return for_each_index(stream, count, gelu_gradient<S>{x, dy, dx});
  visit_activation(kind, [&](auto f) { for_each_index(stream, count, activated_gradient<S, decltype(f)>{y, dy, dx}); });
}

#define PENSTOCK_INSTANTIATE(S)                                                                                \
  template void drop(gpu::stream_ref, const drop_key&, std::size_t, std::size_t, const S*, S*);                \
  template void activate(gpu::stream_ref, activation, std::size_t, const S*, S*);                              \
  template void activate_gradient(gpu::stream_ref, activation, std::size_t, const S*, const S*, const S*, S*); \
  template void round_values(gpu::stream_ref, std::size_t, const arithmetic<S>*, S*);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
PENSTOCK_INSTANTIATE(bfloat16)
PENSTOCK_INSTANTIATE(float16)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train
