// Element-wise work, once for both devices: functors applied through Thrust with the policy of the device. A build
// without CUDA compiles this file as C++.
#include "elementwise.hpp"

#include "activation.hpp"
#include "for_each_index.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>

namespace penstock::train {
namespace {

template <class T>
struct sgd_update {
  const step_state* state;
  T* p;
  const T* g;
  T* v;
  T momentum, weight_decay;
  bool nesterov;

  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    if (state->blocked) return;
    T change = g[i] * static_cast<T>(state->gradient_scale) + weight_decay * p[i];
    if (v != nullptr) {
      const T velocity = momentum * v[i] + change;
      v[i] = velocity;
      change = nesterov ? change + momentum * velocity : velocity;
    }
    p[i] -= static_cast<T>(state->learning_rate) * change;
  }
};

template <class T>
struct adamw_update {
  const step_state* state;
  T* p;
  const T* g;
  T* m;
  T* v;
  T beta1, beta2, epsilon, weight_decay;

  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    if (state->blocked) return;
    const T rate = static_cast<T>(state->learning_rate);
    const T gradient = g[i] * static_cast<T>(state->gradient_scale);
    const T mean = beta1 * m[i] + (T(1) - beta1) * gradient;
    const T square = beta2 * v[i] + (T(1) - beta2) * gradient * gradient;
    m[i] = mean;
    v[i] = square;
    using std::sqrt;
    const T root = sqrt(square * static_cast<T>(state->correction2)) + epsilon;
    p[i] = p[i] - rate * weight_decay * p[i] - rate * static_cast<T>(state->correction1) * mean / root;
  }
};

template <class T>
struct dropped_value {
  const step_state* state;
  std::uint64_t seed, layer, width, threshold;  // of 2^32: values with fewer random bits are dropped
  T scale;
  const T* from;
  T* to;

  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    using gpu::mix;
    const std::uint64_t element = state->block.first_row * width + i;
    const std::uint64_t bits = mix(mix(mix(mix(seed) + state->progress.steps) + layer) + element);
    to[i] = (bits >> 32) < threshold ? T(0) : from[i] * scale;
  }
};

template <class T, class F>
struct activation_in_place {
  T* values;
  F f;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const { values[i] = f(values[i]); }
};

}  // namespace

template <class T>
void drop(gpu::stream_ref stream, const drop_key& key, std::size_t width, std::size_t count, const T* from, T* to) {
  const auto threshold = static_cast<std::uint64_t>(key.probability * 4294967296.0);
  for_each_index(stream, count,
                 dropped_value<T>{key.state, key.seed, key.layer, width, threshold,
                                  static_cast<T>(1 / (1 - key.probability)), from, to});
}
template void drop(gpu::stream_ref, const drop_key&, std::size_t, std::size_t, const float*, float*);
template void drop(gpu::stream_ref, const drop_key&, std::size_t, std::size_t, const double*, double*);

template <class T>
void activate(gpu::stream_ref stream, activation kind, std::size_t count, T* values) {
  visit_activation(kind, [&](auto f) {
    for_each_index(stream, count, activation_in_place<T, decltype(f)>{values, f});
  });
}
template void activate(gpu::stream_ref, activation, std::size_t, float*);
template void activate(gpu::stream_ref, activation, std::size_t, double*);

template <class T>
void optimizer_step(gpu::stream_ref stream, const optimizer_options& optimizer, const step_state* state,
                    std::size_t count, T* parameters, const T* gradients, T* first, T* second) {
  if (const auto* o = std::get_if<sgd>(&optimizer))
    return for_each_index(stream, count,
                          sgd_update<T>{state, parameters, gradients, first, static_cast<T>(o->momentum),
                                        static_cast<T>(o->weight_decay), o->nesterov});
  const auto& o = std::get<adamw>(optimizer);
  for_each_index(stream, count,
                 adamw_update<T>{state, parameters, gradients, first, second, static_cast<T>(o.beta1),
                                 static_cast<T>(o.beta2), static_cast<T>(o.epsilon), static_cast<T>(o.weight_decay)});
}

template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*, std::size_t, float*,
                             const float*, float*, float*);
template void optimizer_step(gpu::stream_ref, const optimizer_options&, const step_state*, std::size_t, double*,
                             const double*, double*, double*);

}  // namespace penstock::train
