#pragma once

#include "../update_rules.hpp"
#include "past_caches.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>

namespace penstock::train {

namespace host {

/// The rule on one parameter after another. The arrays do not overlap, so that the compiler makes vectors of the loop.
template <std::size_t Moments, class Rule, class T>
void update_range(const Rule& rule, const step_factors<T>& step, std::size_t count, T* __restrict p,
                  const T* __restrict g, [[maybe_unused]] T* __restrict first, [[maybe_unused]] T* __restrict second) {
  for (std::size_t i = 0; i < count; ++i) {
    T none = 0;
    if constexpr (Moments == 0) rule(step, p[i], g[i], none, none);
    if constexpr (Moments == 1) rule(step, p[i], g[i], first[i], none);
    if constexpr (Moments == 2) rule(step, p[i], g[i], first[i], second[i]);
  }
}

template <class Rule, class S, class T>
void update_range(const Rule& rule, const step_factors<T>& step, const updated_arrays<S, T>& a, std::size_t first,
                  std::size_t last) {
  constexpr std::size_t piece = 1024;
  T values[piece];
  for (std::size_t i = first; i < last; i += piece) {
    const std::size_t count = std::min(piece, last - i);
    std::copy_n(a.parameters + i, count, values);
    T* const m = a.first != nullptr ? a.first + i : nullptr;
    if constexpr (Rule::most_moments == 2)
      update_range<2>(rule, step, count, values, a.gradients + i, m, a.second + i);
    else if (m != nullptr)
      update_range<1, Rule, T>(rule, step, count, values, a.gradients + i, m, nullptr);
    else
      update_range<0, Rule, T>(rule, step, count, values, a.gradients + i, nullptr, nullptr);
    if (a.rounded != nullptr)
      for (std::size_t j = 0; j < count; ++j) a.rounded[i + j] = static_cast<S>(values[j]);
    copy_past_caches(values, a.parameters + i, count * sizeof(T));
  }
  settle_past_caches();
}

/// Call inside the arena.
template <class Rule, class S, class T>
void update_parameters(const step_state& state, const updated_arrays<S, T>& arrays, const Rule& rule) {
  if (state.blocked) return;
  constexpr std::size_t grain = 16384;
  const step_factors<T> step(state);
  // A thread takes the same range at every step, with its moments in its cache. They alone are written there: all
  // threads have read the parameters.
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, arrays.count, grain),
      [&](const auto& range) { update_range(rule, step, arrays, range.begin(), range.end()); },
      tbb::static_partitioner{});
}

}  // namespace host

}  // namespace penstock::train
