#pragma once

#include "element.hpp"
#include "row_loss.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// A loss of outputs that say yes (above 0) or no, against labels 0 and 1 or chances between: the mean of what `of`
/// gives for each output x and target y.
template <class S, class Of>
struct yes_no_loss {
  using T = arithmetic<S>;
  std::size_t width = 0;
  Of of;
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
    const T first = static_cast<T>(z[0]);
    const bool predicts = first == first;  // a NaN is neither yes nor no
    if (confusion != nullptr && factors.gradient == T(0) && predicts && lanes.index() == 0)
      lanes.add_one(confusion[(wanted(target, 0) >= T(0.5) ? 2 : 0) + (first > T(0) ? 1 : 0)]);
    return mean_over_outputs(lanes, width, z, factors, [&](T x, std::size_t c) {
      const T y = wanted(target, c);
      output_score<T> score = of(x, y);
      score.missed = x != x || (x > T(0)) != (y >= T(0.5));
      return score;
    });
  }
};

/// Cross-entropy of sigmoids: (1 - y) x - (1 + (p - 1) y) log(sigmoid(x)), p the positive weight.
template <class T>
struct sigmoid_entropy {
  T positive_weight;
  PENSTOCK_HOST_DEVICE output_score<T> operator()(T x, T y) const {
    using std::exp;
    using std::log1p;
    const T size = x < T(0) ? -x : x;
    const T small = exp(-size);                                  // of the side that does not overflow
    const T negative = log1p(small) + (x < T(0) ? size : T(0));  // -log(sigmoid(x))
    const T rest = (x < T(0) ? T(1) : small) / (T(1) + small);   // 1 - sigmoid(x)
    const T counted = T(1) + (positive_weight - T(1)) * y;
    return {(T(1) - y) * x + counted * negative, (T(1) - y) - counted * rest};
  }
};

/// Of two that are compared the better one leads by a margin at least: max(0, margin - x) where the first is better
/// (y = 1), max(0, margin + x) where the second is (y = 0), x the difference of their scores.
template <class T>
struct missed_margin {
  T margin;
  PENSTOCK_HOST_DEVICE output_score<T> operator()(T x, T y) const {
    const T first = margin - x, second = margin + x;
    // Not "first > 0", so that a NaN stays one.
    return {y * (first < T(0) ? T(0) : first) + (T(1) - y) * (second < T(0) ? T(0) : second),
            (second < T(0) ? T(0) : T(1) - y) - (first < T(0) ? T(0) : y)};
  }
};

}  // namespace penstock::train
