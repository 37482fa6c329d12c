#pragma once

#include "element.hpp"
#include "row_loss.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// Of two that are compared the better one leads by a margin at least: max(0, margin - x) where the first is better
/// (y = 1), max(0, margin + x) where the second is (y = 0), x the difference of their scores.
template <class S>
struct margin_loss {
  using T = arithmetic<S>;
  std::size_t width = 0;
  T margin = 1;
  std::uint64_t* confusion = nullptr;  // 2 x 2, for one output

  PENSTOCK_HOST_DEVICE static T wanted(const row_target<T>& target, std::size_t c) {
    return target.values != nullptr ? target.values[c] : static_cast<T>(target.label);
  }

  template <class Lanes>
  PENSTOCK_HOST_DEVICE bool accepts(Lanes lanes, const row_target<T>& target) const {
    std::size_t outside = 0;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      outside += wanted(target, c) >= T(0) && wanted(target, c) <= T(1) ? 0 : 1;
    return lanes.sum(outside) == 0;
  }

  template <class Lanes>
  PENSTOCK_HOST_DEVICE row_score<T> operator()(Lanes lanes, S* z, const row_target<T>& target,
                                               const row_factors<T>& factors) const {
    if (confusion != nullptr && factors.gradient == T(0) && lanes.index() == 0)
      lanes.add_one(confusion[(wanted(target, 0) >= T(0.5) ? 2 : 0) + (static_cast<T>(z[0]) > T(0) ? 1 : 0)]);
    return mean_over_outputs(lanes, width, z, factors, [&](T x, std::size_t c) {
      const T y = wanted(target, c), first = margin - x, second = margin + x;
      output_score<T> score;
      // Not "first > 0", so that a NaN stays one.
      score.loss = y * (first < T(0) ? T(0) : first) + (T(1) - y) * (second < T(0) ? T(0) : second);
      score.derivative = (second < T(0) ? T(0) : T(1) - y) - (first < T(0) ? T(0) : y);
      score.missed = (x > T(0)) != (y >= T(0.5));
      return score;
    });
  }
};

}  // namespace penstock::train
