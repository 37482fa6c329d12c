#pragma once

#include "element.hpp"
#include "row_loss.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// Cross-entropy of the softmax, by log-sum-exp.
template <class S>
struct softmax_loss {
  using T = arithmetic<S>;
  std::size_t width = 0;
  T smoothing = 0;
  const T* class_weights = nullptr;  // null: 1
  std::size_t top_k = 1;
  std::uint64_t* confusion = nullptr;  // width x width, rows are targets; null: not counted

  template <class Lanes>
  PENSTOCK_HOST_DEVICE bool accepts(Lanes lanes, const row_target<T>& target) const {
    if (target.values == nullptr) return target.label >= 0 && target.label < static_cast<std::int64_t>(width);
    T sum = 0, outside = 0;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count()) {
      sum += target.values[c];
      outside += target.values[c] >= T(0) && target.values[c] <= T(1) ? T(0) : T(1);
    }
    sum = lanes.sum(sum);
    return lanes.sum(outside) == T(0) && sum > T(0.999) && sum < T(1.001);
  }

  template <class Lanes>
  PENSTOCK_HOST_DEVICE row_score<T> operator()(Lanes lanes, S* z, const row_target<T>& target,
                                               const row_factors<T>& factors) const {
    T peak = static_cast<T>(z[0]);
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      peak = static_cast<T>(z[c]) > peak ? static_cast<T>(z[c]) : peak;
    peak = lanes.largest(peak);
    using std::exp;
    using std::log;
    T sum = 0, share = 0, linear = 0;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count()) {
      const T above = static_cast<T>(z[c]) - peak, q = wanted(target, c);
      sum += exp(above);
      share += q;
      if (q != T(0)) linear += q * above;
    }
    sum = lanes.sum(sum);
    share = lanes.sum(share);
    linear = lanes.sum(linear);
    row_score<T> score;
    score.loss = factors.weight * (share * log(sum) - linear);
    score.weight = factors.weight * (target.values == nullptr ? weight_of(class_of(target)) : T(1));
    const bool predicts = score.loss == score.loss;  // NaN or +inf among the outputs predicts nothing
    score.hits = compare(lanes, z, label_of(lanes, target), predicts, factors.gradient == T(0));
    if (factors.gradient == T(0)) return score;
    lanes.join();
    const T scale = T(1) / sum;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count()) {
      const T p = exp(static_cast<T>(z[c]) - peak) * scale;
      z[c] = static_cast<S>(factors.gradient * (share * p - wanted(target, c)));
    }
    return score;
  }

 private:
  PENSTOCK_HOST_DEVICE static std::size_t class_of(const row_target<T>& target) {
    return static_cast<std::size_t>(target.label);
  }
  PENSTOCK_HOST_DEVICE T weight_of(std::size_t c) const { return class_weights != nullptr ? class_weights[c] : T(1); }

  /// The probability that is wanted of class c, times its weight.
  PENSTOCK_HOST_DEVICE T wanted(const row_target<T>& target, std::size_t c) const {
    const T given = target.values != nullptr ? target.values[c] : (c == class_of(target) ? T(1) : T(0));
    const T smoothed = smoothing == T(0) ? given : (T(1) - smoothing) * given + smoothing / static_cast<T>(width);
    return class_weights != nullptr ? smoothed * class_weights[c] : smoothed;
  }

  /// The label; the first class of the largest value where there are values.
  template <class Lanes>
  PENSTOCK_HOST_DEVICE std::size_t label_of(Lanes lanes, const row_target<T>& target) const {
    return target.values != nullptr ? first_largest(lanes, target.values) : class_of(target);
  }
  template <class Lanes, class V>
  PENSTOCK_HOST_DEVICE std::size_t first_largest(Lanes lanes, const V* values) const {
    T largest = static_cast<T>(values[0]);
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      largest = static_cast<T>(values[c]) > largest ? static_cast<T>(values[c]) : largest;
    largest = lanes.largest(largest);
    std::size_t first = width - 1;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      if (static_cast<T>(values[c]) == largest && c < first) first = c;
    return lanes.smallest(first);
  }

  /// Where the label stands among the outputs; of equal ones the first class is ahead, and none is where there is a
  /// NaN.
  template <class Lanes>
  PENSTOCK_HOST_DEVICE std::uint32_t compare(Lanes lanes, const S* z, std::size_t label, bool predicts,
                                             bool evaluated) const {
    if (!predicts) return hit_counted;
    const T own = static_cast<T>(z[label]);
    std::size_t ahead = 0;
    for (std::size_t c = lanes.index(); c < width; c += lanes.count()) {
      const T other = static_cast<T>(z[c]);
      ahead += other > own || (other == own && c < label) ? 1 : 0;
    }
    ahead = lanes.sum(ahead);
    if (confusion != nullptr && evaluated) {
      const std::size_t predicted = first_largest(lanes, z);
      if (lanes.index() == 0) lanes.add_one(confusion[label * width + predicted]);
    }
    return hit_counted | (ahead == 0 ? hit_first : 0) | (ahead < top_k ? hit_top : 0);
  }
};

}  // namespace penstock::train
