#pragma once

#include "element.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cstddef>
#include <cstdint>

namespace penstock::train {

// Losses of one row, once for both devices. A loss says which targets it takes, and gives a row's score with the
// gradient in place of its outputs: both in the arithmetic of the outputs' type, by the lanes that share the row.

/// What one row came to.
template <class T>
struct row_score {
  T loss = 0;    ///< times weight
  T weight = 0;  ///< the row's, and its class's
  T square = 0;  ///< times weight: mean squared distance from the targets, for losses of values
  std::uint32_t hits = 0;
};
inline constexpr std::uint32_t hit_counted = 1;  ///< neither padding, masked nor at fault
inline constexpr std::uint32_t hit_first = 2;    ///< the prediction is the target
inline constexpr std::uint32_t hit_top = 4;      ///< the target is among the top_k largest outputs

/// A row's target: a class counted from 0, or a value for each output.
template <class T>
struct row_target {
  std::int64_t label = 0;
  const T* values = nullptr;
};

/// How a row counts: its loss and its gradient are multiplied by these.
template <class T>
struct row_factors {
  T weight = 1;
  T gradient = 1;  ///< weight times the loss scale; 0: no gradient is asked for
};

/// Sums what `one` gives for each output: the loss, and the derivative that takes the output's place.
template <class S, class Lanes, class One>
PENSTOCK_HOST_DEVICE row_score<arithmetic<S>> mean_over_outputs(Lanes lanes, std::size_t width, S* z,
                                                                const row_factors<arithmetic<S>>& factors, One one) {
  using T = arithmetic<S>;
  T loss = 0, square = 0;
  std::size_t missed = 0;
  const T share = factors.gradient / static_cast<T>(width);
  for (std::size_t c = lanes.index(); c < width; c += lanes.count()) {
    const auto result = one(static_cast<T>(z[c]), c);
    loss += result.loss;
    square += result.square;
    missed += result.missed ? 1 : 0;
    if (factors.gradient != T(0)) z[c] = static_cast<S>(share * result.derivative);
  }
  row_score<T> score;
  score.loss = factors.weight * (lanes.sum(loss) / static_cast<T>(width));
  score.square = factors.weight * (lanes.sum(square) / static_cast<T>(width));
  score.weight = factors.weight;
  score.hits = hit_counted | (lanes.sum(missed) == 0 ? hit_first | hit_top : 0);
  return score;
}

/// What one output came to.
template <class T>
struct output_score {
  T loss = 0, derivative = 0, square = 0;
  bool missed = true;
};

}  // namespace penstock::train
