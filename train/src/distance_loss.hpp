#pragma once

#include "element.hpp"
#include "row_loss.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// A loss that is a function of the distance from a target of any finite value.
template <class S, class Distance>
struct distance_loss {
  using T = arithmetic<S>;
  std::size_t width = 0;
  Distance distance;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE bool accepts(Lanes lanes, const row_target<T>& target) const {
    std::size_t outside = 0;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      outside += target.values[c] - target.values[c] == T(0) ? 0 : 1;
    return lanes.sum(outside) == 0;
  }

  template <class Lanes>
  PENSTOCK_HOST_DEVICE row_score<T> operator()(Lanes lanes, S* z, const row_target<T>& target,
                                               const row_factors<T>& factors) const {
    return mean_over_outputs(lanes, width, z, factors, [&](T x, std::size_t c) {
      const T d = x - target.values[c];
      output_score<T> score = distance(d);
      score.square = d * d;
      return score;
    });
  }
};

template <class T>
struct squared_distance {
  PENSTOCK_HOST_DEVICE output_score<T> operator()(T d) const { return {d * d, T(2) * d}; }
};

template <class T>
struct huber_distance {
  T delta;
  PENSTOCK_HOST_DEVICE output_score<T> operator()(T d) const {
    const T size = d < T(0) ? -d : d;
    // Not "size > delta", so that a NaN stays one.
    if (size <= delta || size != size) return {T(0.5) * d * d, d};
    return {delta * (size - T(0.5) * delta), d < T(0) ? -delta : delta};
  }
};

}  // namespace penstock::train
