// How two sides come together, once for both devices: a build without CUDA compiles this file as C++.
#include "join_rows.hpp"

#include "for_each_index.hpp"
#include "for_each_row.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

namespace penstock::train {
namespace {

/// Both sides of one value, number i of `count`.
template <class S>
struct two_sides {
  using T = arithmetic<S>;
  std::size_t count;
  const S* x;
  PENSTOCK_HOST_DEVICE T first(std::size_t i) const { return static_cast<T>(x[i]); }
  PENSTOCK_HOST_DEVICE T second(std::size_t i) const { return static_cast<T>(x[count + i]); }
};

template <class S>
struct difference_of_sides {
  two_sides<S> x;
  S* y;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const { y[i] = static_cast<S>(x.first(i) - x.second(i)); }
};

template <class S>
struct product_of_sides {
  two_sides<S> x;
  S* y;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const { y[i] = static_cast<S>(x.first(i) * x.second(i)); }
};

/// Where value i of a side is in the rows that hold both.
PENSTOCK_HOST_DEVICE inline std::size_t place_of(std::size_t i, std::size_t width) {
  return i / width * (2 * width) + i % width;
}

template <class S>
struct sides_in_a_row {
  std::size_t count, width;
  const S* x;
  S* y;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    y[place_of(i, width)] = x[i];
    y[place_of(i, width) + width] = x[count + i];
  }
};

template <class S>
struct dot_of_sides {
  using T = arithmetic<S>;
  two_sides<S> x;
  std::size_t width;
  S* y;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t row) const {
    T sum = 0;
    for (std::size_t j = lanes.index(); j < width; j += lanes.count())
      sum += x.first(row * width + j) * x.second(row * width + j);
    sum = lanes.sum(sum);
    if (lanes.index() == 0) y[row] = static_cast<S>(sum);
  }
};

template <class S>
struct difference_gradient {
  using T = arithmetic<S>;
  std::size_t count;
  const S* dy;
  S* dx;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    dx[i] = dy[i];
    dx[count + i] = static_cast<S>(-static_cast<T>(dy[i]));
  }
};

/// `share`: values of a side for each value of dy: 1 for the product, the width for the dot product.
template <class S>
struct product_gradient {
  using T = arithmetic<S>;
  two_sides<S> x;
  std::size_t share;
  const S* dy;
  S* dx;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    const T change = static_cast<T>(dy[i / share]);
    dx[i] = static_cast<S>(change * x.second(i));
    dx[x.count + i] = static_cast<S>(change * x.first(i));
  }
};

template <class S>
struct concatenation_gradient {
  std::size_t count, width;
  const S* dy;
  S* dx;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    dx[i] = dy[place_of(i, width)];
    dx[count + i] = dy[place_of(i, width) + width];
  }
};

}  // namespace

template <class S>
void join_rows(gpu::stream_ref stream, join kind, std::size_t rows, std::size_t width, const S* x, S* y) {
  const std::size_t count = rows * width;
  switch (kind) {
    case join::none: return;
    case join::difference: return for_each_index(stream, count, difference_of_sides<S>{{count, x}, y});
    case join::product: return for_each_index(stream, count, product_of_sides<S>{{count, x}, y});
    case join::concatenation: return for_each_index(stream, count, sides_in_a_row<S>{count, width, x, y});
    case join::dot: return for_each_row(stream, rows, dot_of_sides<S>{{count, x}, width, y});
  }
}

template <class S>
void join_rows_gradient(gpu::stream_ref stream, join kind, std::size_t rows, std::size_t width, const S* x, const S* dy,
                        S* dx) {
  const std::size_t count = rows * width;
  switch (kind) {
    case join::none: return;
    case join::difference: return for_each_index(stream, count, difference_gradient<S>{count, dy, dx});
    case join::product: return for_each_index(stream, count, product_gradient<S>{{count, x}, 1, dy, dx});
    case join::concatenation: return for_each_index(stream, count, concatenation_gradient<S>{count, width, dy, dx});
    case join::dot: return for_each_index(stream, count, product_gradient<S>{{count, x}, width, dy, dx});
  }
}

#define PENSTOCK_INSTANTIATE(S)                                                           \
  template void join_rows(gpu::stream_ref, join, std::size_t, std::size_t, const S*, S*); \
  template void join_rows_gradient(gpu::stream_ref, join, std::size_t, std::size_t, const S*, const S*, S*);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
PENSTOCK_INSTANTIATE(bfloat16)
PENSTOCK_INSTANTIATE(float16)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train
