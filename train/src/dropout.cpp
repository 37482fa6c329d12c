#include "dropout.hpp"

#include "elementwise.hpp"

#include <penstock/gpu/memory.hpp>

namespace penstock::train {

template <class T>
void dropout<T>::forward(const pass<T>& p, const T* x, T* y) {
  if (!p.training) return gpu::copy(p.stream, y, x, p.rows * width_ * sizeof(T));
  drop(p.stream, {p.state, p.seed, number_, probability_}, width_, p.rows * width_, x, y);
}

template <class T>
void dropout<T>::backward(const pass<T>& p, const T*, const T*, T* dy, T* dx, bool) {
  if (dx != nullptr) drop<T>(p.stream, {p.state, p.seed, number_, probability_}, width_, p.rows * width_, dy, dx);
}

template class dropout<float>;
template class dropout<double>;

}  // namespace penstock::train
