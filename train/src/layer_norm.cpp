#include "layer_norm.hpp"

#include "normalise_rows.hpp"

#include <algorithm>

namespace penstock::train {

template <class S>
void layer_norm<S>::initial(std::size_t number, std::uint64_t, std::uint64_t, std::uint64_t,
                            std::span<T> values) const {
  std::fill(values.begin(), values.end(), number == 0 ? T(1) : T(0));
}

template <class S>
void layer_norm<S>::bind(const S* parameters, T* gradients, T* scratch) {
  weight_ = parameters;
  bias_ = parameters + width_;
  weight_gradient_ = gradients;
  bias_gradient_ = gradients != nullptr ? gradients + width_ : nullptr;
  statistics_ = scratch;
}

template <class S>
void layer_norm<S>::forward(const pass<S>& p, const S* x, S* y) {
  normalise_rows(p.stream, p.rows, width_, x, weight_, bias_, y, statistics_);
}

/// The gradient of the identity's activation is the sum of its columns: of dy for the bias, and of dy times the
/// normalised input, which takes dy's place, for the weight.
template <class S>
void layer_norm<S>::backward(const pass<S>& p, const S* x, const S*, S* dy, S* dx, bool accumulate) {
  p.on.activation_gradient(activation::identity, p.rows, width_, dy, dy, bias_gradient_, accumulate);
  normalise_rows_gradient(p.stream, p.rows, width_, x, weight_, statistics_, dy, dx);
  p.on.activation_gradient(activation::identity, p.rows, width_, dy, dy, weight_gradient_, accumulate);
}

template class layer_norm<float>;
template class layer_norm<double>;
template class layer_norm<bfloat16>;
template class layer_norm<float16>;

}  // namespace penstock::train
