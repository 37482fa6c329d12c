#include "dense.hpp"

#include "random.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::train {

template <class S>
std::vector<parameter_shape> dense<S>::parameters() const {
  return {{"weight", {outputs_, inputs_}}, {"bias", {outputs_}}};
}

/// He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015: normal with variance 2 / inputs before a ReLU (or GELU);
/// 1 / inputs where nothing is cut off. Biases are 0.
template <class S>
void dense<S>::initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
                       std::span<T> values) const {
  if (number != 0) return static_cast<void>(std::fill(values.begin(), values.end(), T(0)));
  const bool halves = met_ == activation::relu || met_ == activation::gelu;
  const double deviation = std::sqrt((halves ? 2.0 : 1.0) / static_cast<double>(inputs_));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(deviation * random_normal(seed, layer_number, first + i));
}

template <class S>
void dense<S>::bind(const S* parameters, T* gradients, T*) {
  weight_ = parameters;
  bias_ = parameters + outputs_ * inputs_;
  weight_gradient_ = gradients;
  bias_gradient_ = gradients != nullptr ? gradients + outputs_ * inputs_ : nullptr;
}

template <class S>
void dense<S>::forward(const pass<S>& p, const S* x, S* y) {
  p.on.multiply({.rows = p.rows,
                 .columns = outputs_,
                 .depth = inputs_,
                 .transpose_b = true,
                 .bias = true,
                 .activation = activation_},
                x, weight_, y, bias_);
}

template <class S>
void dense<S>::backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) {
  product weights{.rows = outputs_,
                  .columns = inputs_,
                  .depth = p.rows,
                  .transpose_a = true,
                  .accumulate = accumulate,
                  .gradient = true,
                  .sums = !accumulate};
  // The bias's gradient comes of the same product where the device's library can make it so, which sets and does not
  // add.
  weights.sums = weights.sums && p.on.makes_sums(weights, dy, x, weight_gradient_, bias_gradient_);
  p.on.activation_gradient(activation_, p.rows, outputs_, y, dy, weights.sums ? nullptr : bias_gradient_, accumulate);
  p.on.multiply_gradient(weights, dy, x, weight_gradient_, bias_gradient_);
  if (dx != nullptr) p.on.multiply({.rows = p.rows, .columns = inputs_, .depth = outputs_}, dy, weight_, dx, nullptr);
}

template class dense<float>;
template class dense<double>;
template class dense<bfloat16>;
template class dense<float16>;

}  // namespace penstock::train
