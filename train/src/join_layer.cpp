#include "join_layer.hpp"

#include "join_rows.hpp"

namespace penstock::train {

template <class S>
void join_layer<S>::forward(const pass<S>& p, const S* x, S* y) {
  join_rows(p.stream, kind_, p.rows, width_, x, y);
}

template <class S>
void join_layer<S>::backward(const pass<S>& p, const S* x, const S*, S* dy, S* dx, bool) {
  if (dx != nullptr) join_rows_gradient<S>(p.stream, kind_, p.rows, width_, x, dy, dx);
}

template class join_layer<float>;
template class join_layer<double>;
template class join_layer<bfloat16>;
template class join_layer<float16>;

}  // namespace penstock::train
