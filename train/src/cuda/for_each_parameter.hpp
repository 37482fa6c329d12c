#pragma once

#include "check.hpp"

#include "../host/update_parameters.hpp"

#include <penstock/gpu/stream.hpp>

#include <cstddef>

namespace penstock::train {

namespace cuda {

inline constexpr unsigned update_threads = 256;

/// Values that one access moves.
template <class V, std::size_t Count>
struct alignas(sizeof(V) * Count) value_pack {
  V values[Count];
};

template <class V, std::size_t Count>
__device__ value_pack<V, Count> load_pack(const V* from, std::size_t pack) {
  if (from == nullptr) return {};
  return reinterpret_cast<const value_pack<V, Count>*>(from)[pack];
}
template <class V, std::size_t Count>
__device__ void store_pack(V* to, std::size_t pack, const value_pack<V, Count>& values) {
  if (to != nullptr) reinterpret_cast<value_pack<V, Count>*>(to)[pack] = values;
}

/// A pack of parameters for each thread, and one by one what no pack holds. Everything is asked for before the state
/// is looked at, so that one wait is for both.
template <class Rule, class S, class T>
__global__ void for_each_parameter_kernel(const step_state* state, updated_arrays<S, T> a, Rule rule) {
  constexpr std::size_t width = 16 / sizeof(T);
  const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x, packs = a.count / width;
  if (n < packs) {
    auto p = load_pack<T, width>(a.parameters, n), m = load_pack<T, width>(a.first, n),
         v = load_pack<T, width>(a.second, n);
    const auto g = load_pack<T, width>(a.gradients, n);
    if (state->blocked) return;
    const step_factors<T> step(*state);
    value_pack<S, width> rounded;
    for (std::size_t i = 0; i < width; ++i) {
      rule(step, p.values[i], g.values[i], m.values[i], v.values[i]);
      rounded.values[i] = static_cast<S>(p.values[i]);
    }
    store_pack(a.parameters, n, p);
    store_pack(a.first, n, m);
    store_pack(a.second, n, v);
    store_pack(a.rounded, n, rounded);
  } else if (const std::size_t i = packs * width + (n - packs); i < a.count && !state->blocked) {
    T none = 0;
    rule(step_factors<T>(*state), a.parameters[i], a.gradients[i], a.first != nullptr ? a.first[i] : none,
         a.second != nullptr ? a.second[i] : none);
    if (a.rounded != nullptr) a.rounded[i] = static_cast<S>(a.parameters[i]);
  }
}

}  // namespace cuda

/// The rule on each parameter, in the order of `stream`; on the host device on the caller's TBB arena. Does not block
/// on CUDA.
template <class Rule, class S, class T>
void for_each_parameter(gpu::stream_ref stream, const step_state* state, const updated_arrays<S, T>& arrays,
                        const Rule& rule) {
  if (stream.device().is_host()) return host::update_parameters(*state, arrays, rule);
  constexpr std::size_t width = 16 / sizeof(T);
  const std::size_t threads = arrays.count / width + arrays.count % width;
  if (threads == 0) return;
  const auto blocks = static_cast<unsigned>((threads + cuda::update_threads - 1) / cuda::update_threads);
  cuda::for_each_parameter_kernel<<<blocks, cuda::update_threads, 0, stream.native()>>>(state, arrays, rule);
  cuda::check(cudaGetLastError(), "launching the optimizer");
}

}  // namespace penstock::train
