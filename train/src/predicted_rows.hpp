#pragma once

#include "element.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/predictor.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// What a predictor gives, from the outputs of the last layer.
template <class S>
void predicted_rows(gpu::stream_ref stream, prediction form, std::size_t rows, std::size_t width, const S* outputs,
                    arithmetic<S>* to);

/// Inputs of a predictor, row by row, and what they are normalised by.
template <class T>
struct predictor_inputs {
  std::size_t columns = 0;
  const T* x = nullptr;
  const T* x2 = nullptr;  ///< the second input's; null: there is one
  const T* mean = nullptr;
  const T* scale = nullptr;
};

/// marks[i] becomes 1 where an input of row i is not finite, or becomes so when it is normalised: those rows of which
/// backend::take() notes the first; 0 elsewhere.
template <class T>
void mark_not_finite(gpu::stream_ref stream, const predictor_inputs<T>& inputs, std::size_t rows, std::uint8_t* marks);

}  // namespace penstock::train
