#pragma once

#include "element.hpp"
#include "row_loss.hpp"
#include "step_state.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/loss.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// A loss with what it works on, in the device's memory.
template <class T>
struct planned_loss {
  loss_options options;
  target targets = target::label;
  std::size_t width = 0;  ///< outputs of a row
  std::size_t top_k = 1;
  row_score<T>* scores = nullptr;
  const T* class_weights = nullptr;    ///< null: all 1
  std::uint64_t* confusion = nullptr;  ///< null: not counted
};

/// The scores of `rows` rows of outputs, of the pass under way, and where `gradient` the gradient of the loss sum in
/// place of the outputs. Padding and masked rows score nothing, whatever they hold. Notes the first row of a bad
/// target, weight or loss.
template <class S>
void score_rows(gpu::stream_ref stream, const planned_loss<arithmetic<S>>& loss, std::size_t rows, S* outputs,
                bool gradient, step_state* state);

}  // namespace penstock::train
