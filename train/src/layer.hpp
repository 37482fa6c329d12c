#pragma once

#include "backend.hpp"
#include "element.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::train {

/// One array of weights of a layer.
struct parameter_shape {
  std::string name;  ///< "weight"
  std::vector<std::uint64_t> shape;
};

/// One block of rows on its way through the layers.
template <class S>
struct pass {
  backend<S>& on;
  gpu::stream_ref stream;
  const step_state* state;  ///< in the device's memory
  std::uint64_t seed;
  std::size_t rows;
  bool training;  ///< false where the model is only evaluated
};

/// One step of a model from rows of `inputs()` to rows of `outputs()` values. A layer knows its parameters' shapes
/// before any memory is there, is bound to memory once, and works in it in place. What backward needs of forward is the
/// layer's input and output, which the network keeps, and its scratch.
/// Rows are of type S; gradients of weights are kept in its arithmetic.
template <class S>
class layer {
 public:
  using T = arithmetic<S>;

  virtual ~layer() = default;

  virtual std::size_t inputs() const noexcept = 0;
  virtual std::size_t outputs() const noexcept = 0;
  virtual std::vector<parameter_shape> parameters() const = 0;
  /// Elements of parameter `number` [first, first + values.size()) before the first step: a function of the key alone.
  virtual void initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
                       std::span<T> values) const = 0;

  /// Values of its own that the layer needs for so many rows, between forward and backward or within one of them.
  virtual std::size_t scratch_elements(std::size_t) const noexcept { return 0; }

  /// The parameters and their gradients, one array after another, and the scratch, in the device's memory.
  virtual void bind(const S* parameters, T* gradients, T* scratch) = 0;

  /// y = f(x) for the rows of the pass.
  virtual void forward(const pass<S>& p, const S* x, S* y) = 0;
  /// Adds to the gradients where `accumulate`, else sets them; dx unless null. Uses dy as scratch.
  virtual void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) = 0;
};

/// Elements of all parameters of a layer.
template <class S>
std::size_t parameter_elements(const layer<S>& l) {
  std::size_t elements = 0;
  for (const parameter_shape& p : l.parameters()) {
    std::size_t n = 1;
    for (const std::uint64_t extent : p.shape) n *= extent;
    elements += n;
  }
  return elements;
}

}  // namespace penstock::train
