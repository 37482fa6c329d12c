#include "dropout.hpp"

#include "elementwise.hpp"

#include <penstock/gpu/memory.hpp>

namespace penstock::train {

template <class S>
void dropout<S>::forward(const pass<S>& p, const S* x, S* y) {
  if (!p.training) return gpu::copy(p.stream, y, x, p.rows * width_ * sizeof(S));
  drop(p.stream, {p.state, p.seed, number_, probability_}, width_, p.rows * width_, x, y);
}

template <class S>
void dropout<S>::backward(const pass<S>& p, const S*, const S*, S* dy, S* dx, bool) {
  if (dx != nullptr) drop<S>(p.stream, {p.state, p.seed, number_, probability_}, width_, p.rows * width_, dy, dx);
}

template class dropout<float>;
template class dropout<double>;
template class dropout<bfloat16>;
template class dropout<float16>;

}  // namespace penstock::train
