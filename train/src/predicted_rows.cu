// Predictions from outputs, once for both devices: a build without CUDA compiles this file as C++.
#include "predicted_rows.hpp"

#include "activation.hpp"
#include "for_each_row.hpp"

#include <cmath>

namespace penstock::train {
namespace {

template <class S>
struct predicted_row {
  using T = arithmetic<S>;
  prediction form;
  std::size_t width;
  const S* outputs;
  T* to;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t i) const {
    const S* const z = outputs + i * width;
    T* const p = to + i * width;
    T peak = 0, scale = 1;
    if (form == prediction::softmax) {
      peak = peak_of(lanes, z);
      T sum = 0;
      using std::exp;
      for (std::size_t c = lanes.index(); c < width; c += lanes.count()) sum += exp(static_cast<T>(z[c]) - peak);
      scale = T(1) / lanes.sum(sum);
    }
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      p[c] = value_of(static_cast<T>(z[c]), peak, scale);
  }

 private:
  template <class Lanes>
  PENSTOCK_HOST_DEVICE T peak_of(Lanes lanes, const S* z) const {
    T peak = static_cast<T>(z[0]);
    for (std::size_t c = lanes.index(); c < width; c += lanes.count())
      peak = static_cast<T>(z[c]) > peak ? static_cast<T>(z[c]) : peak;
    return lanes.largest(peak);
  }

  PENSTOCK_HOST_DEVICE T value_of(T z, T peak, T scale) const {
    using std::exp;
    if (form == prediction::softmax) return exp(z - peak) * scale;
    return form == prediction::sigmoid ? sigmoid_activation{}(z) : z;
  }
};

template <class T>
struct marked_row {
  predictor_inputs<T> inputs;
  std::uint8_t* marks;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t i) const {
    int doubt = doubt_of(lanes, inputs.x + i * inputs.columns);
    if (inputs.x2 != nullptr) doubt |= doubt_of(lanes, inputs.x2 + i * inputs.columns);
    doubt = lanes.largest(doubt);
    if (lanes.index() == 0) marks[i] = static_cast<std::uint8_t>(doubt);
  }

 private:
  template <class Lanes>
  PENSTOCK_HOST_DEVICE int doubt_of(Lanes lanes, const T* row) const {
    int doubt = 0;
    for (std::size_t j = lanes.index(); j < inputs.columns; j += lanes.count()) {
      const T value = (row[j] - inputs.mean[j]) * inputs.scale[j];
      doubt |= value - value == T(0) ? 0 : 1;
    }
    return doubt;
  }
};

}  // namespace

template <class T>
void mark_not_finite(gpu::stream_ref stream, const predictor_inputs<T>& inputs, std::size_t rows, std::uint8_t* marks) {
  for_each_row(stream, rows, marked_row<T>{inputs, marks});
}

template void mark_not_finite(gpu::stream_ref, const predictor_inputs<float>&, std::size_t, std::uint8_t*);
template void mark_not_finite(gpu::stream_ref, const predictor_inputs<double>&, std::size_t, std::uint8_t*);

template <class S>
void predicted_rows(gpu::stream_ref stream, prediction form, std::size_t rows, std::size_t width, const S* outputs,
                    arithmetic<S>* to) {
  for_each_row(stream, rows, predicted_row<S>{form, width, outputs, to});
}

template void predicted_rows(gpu::stream_ref, prediction, std::size_t, std::size_t, const float*, float*);
template void predicted_rows(gpu::stream_ref, prediction, std::size_t, std::size_t, const double*, double*);
template void predicted_rows(gpu::stream_ref, prediction, std::size_t, std::size_t, const bfloat16*, float*);
template void predicted_rows(gpu::stream_ref, prediction, std::size_t, std::size_t, const float16*, float*);

}  // namespace penstock::train
