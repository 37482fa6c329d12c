// Row-wise normalisation, once for both devices: a build without CUDA compiles this file as C++.
#include "normalise_rows.hpp"

#include "for_each_row.hpp"

#include <cmath>

namespace penstock::train {
namespace {

template <class S>
struct normalised_row {
  using T = arithmetic<S>;
  std::size_t width;
  const S *x, *weight, *bias;
  S* y;
  T* statistics;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t i) const {
    const S* const from = x + i * width;
    S* const to = y + i * width;
    const T n = static_cast<T>(width);
    T sum = 0, squares = 0;
    for (std::size_t j = lanes.index(); j < width; j += lanes.count()) sum += static_cast<T>(from[j]);
    const T mean = lanes.sum(sum) / n;
    for (std::size_t j = lanes.index(); j < width; j += lanes.count()) {
      const T distance = static_cast<T>(from[j]) - mean;
      squares += distance * distance;
    }
    using std::sqrt;
    const T scale = T(1) / sqrt(lanes.sum(squares) / n + T(1e-5));
    for (std::size_t j = lanes.index(); j < width; j += lanes.count())
      to[j] = static_cast<S>((static_cast<T>(from[j]) - mean) * scale * static_cast<T>(weight[j]) +
                             static_cast<T>(bias[j]));
    if (lanes.index() != 0) return;
    statistics[2 * i] = mean;
    statistics[2 * i + 1] = scale;
  }
};

template <class S>
struct normalised_row_gradient {
  using T = arithmetic<S>;
  std::size_t width;
  const S *x, *weight;
  const T* statistics;
  S *dy, *dx;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t i) const {
    const S* const from = x + i * width;
    S* const change = dy + i * width;
    const T mean = statistics[2 * i], scale = statistics[2 * i + 1], n = static_cast<T>(width);
    T sum = 0, product = 0;
    for (std::size_t j = lanes.index(); j < width; j += lanes.count()) {
      const T g = static_cast<T>(change[j]) * static_cast<T>(weight[j]);
      sum += g;
      product += g * (static_cast<T>(from[j]) - mean) * scale;
    }
    sum = lanes.sum(sum) / n;
    product = lanes.sum(product) / n;
    for (std::size_t j = lanes.index(); j < width; j += lanes.count()) {
      const T normal = (static_cast<T>(from[j]) - mean) * scale, outer = static_cast<T>(change[j]);
      if (dx != nullptr)
        dx[i * width + j] = static_cast<S>(scale * (outer * static_cast<T>(weight[j]) - sum - normal * product));
      change[j] = static_cast<S>(outer * normal);
    }
  }
};

}  // namespace

template <class S>
void normalise_rows(gpu::stream_ref stream, std::size_t rows, std::size_t width, const S* x, const S* weight,
                    const S* bias, S* y, arithmetic<S>* statistics) {
  for_each_row(stream, rows, normalised_row<S>{width, x, weight, bias, y, statistics});
}

template <class S>
void normalise_rows_gradient(gpu::stream_ref stream, std::size_t rows, std::size_t width, const S* x, const S* weight,
                             const arithmetic<S>* statistics, S* dy, S* dx) {
  for_each_row(stream, rows, normalised_row_gradient<S>{width, x, weight, statistics, dy, dx});
}

#define PENSTOCK_INSTANTIATE(S)                                                                             \
  template void normalise_rows(gpu::stream_ref, std::size_t, std::size_t, const S*, const S*, const S*, S*, \
                               arithmetic<S>*);                                                             \
  template void normalise_rows_gradient(gpu::stream_ref, std::size_t, std::size_t, const S*, const S*,      \
                                        const arithmetic<S>*, S*, S*);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
PENSTOCK_INSTANTIATE(bfloat16)
PENSTOCK_INSTANTIATE(float16)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train
