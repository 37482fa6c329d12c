#include "activation_layer.hpp"

#include "elementwise.hpp"

namespace penstock::train {

template <class S>
void activation_layer<S>::forward(const pass<S>& p, const S* x, S* y) {
  activate(p.stream, kind_, p.rows * width_, x, y);
}

template <class S>
void activation_layer<S>::backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool) {
  if (dx != nullptr) activate_gradient(p.stream, kind_, p.rows * width_, x, y, dy, dx);
}

template class activation_layer<float>;
template class activation_layer<double>;
template class activation_layer<bfloat16>;
template class activation_layer<float16>;

}  // namespace penstock::train
