#include "dense.hpp"

#include "random.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::train {

template <class T>
std::vector<parameter_shape> dense<T>::parameters() const {
  return {{"weight", {outputs_, inputs_}}, {"bias", {outputs_}}};
}

/// He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015: normal with variance 2 / inputs before a ReLU; 1 / inputs
/// where nothing is cut off. Biases are 0.
template <class T>
void dense<T>::initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
                       std::span<T> values) const {
  if (number != 0) return static_cast<void>(std::fill(values.begin(), values.end(), T(0)));
  const double deviation = std::sqrt((activation_ == activation::relu ? 2.0 : 1.0) / static_cast<double>(inputs_));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(deviation * random_normal(seed, layer_number, first + i));
}

template <class T>
void dense<T>::bind(T* parameters, T* gradients) {
  weight_ = parameters;
  bias_ = parameters + outputs_ * inputs_;
  weight_gradient_ = gradients;
  bias_gradient_ = gradients + outputs_ * inputs_;
}

template <class T>
void dense<T>::forward(const pass<T>& p, const T* x, T* y) {
  p.on.multiply({.rows = p.rows,
                 .columns = outputs_,
                 .depth = inputs_,
                 .transpose_b = true,
                 .bias = true,
                 .activation = activation_},
                x, weight_, y, bias_);
}

template <class T>
void dense<T>::backward(const pass<T>& p, const T* x, const T* y, T* dy, T* dx, bool accumulate) {
  p.on.activation_gradient(activation_, p.rows, outputs_, y, dy, bias_gradient_, accumulate);
  p.on.multiply({.rows = outputs_, .columns = inputs_, .depth = p.rows, .transpose_a = true, .accumulate = accumulate},
                dy, x, weight_gradient_, nullptr);
  if (dx != nullptr) p.on.multiply({.rows = p.rows, .columns = inputs_, .depth = outputs_}, dy, weight_, dx, nullptr);
}

template class dense<float>;
template class dense<double>;

}  // namespace penstock::train
