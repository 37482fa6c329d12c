#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/train/model.hpp>

#include <cmath>

namespace penstock::train {

// Activations and their derivatives, once for both devices, as functions of the output y where they can be. A NaN stays
// a NaN.

struct identity_activation {
  template <class T>
  PENSTOCK_HOST_DEVICE T operator()(T x) const noexcept {
    return x;
  }
  template <class T>
  PENSTOCK_HOST_DEVICE static T gradient(T, T dy) noexcept {
    return dy;
  }
};

struct relu_activation {
  template <class T>
  PENSTOCK_HOST_DEVICE T operator()(T x) const noexcept {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  PENSTOCK_HOST_DEVICE static T gradient(T y, T dy) noexcept {
    return y > T(0) ? dy : T(0);
  }
};

struct tanh_activation {
  template <class T>
  PENSTOCK_HOST_DEVICE T operator()(T x) const noexcept {
    using std::tanh;
    return tanh(x);
  }
  template <class T>
  PENSTOCK_HOST_DEVICE static T gradient(T y, T dy) noexcept {
    return dy * (T(1) - y * y);
  }
};

struct sigmoid_activation {
  template <class T>
  PENSTOCK_HOST_DEVICE T operator()(T x) const noexcept {
    using std::exp;
    return T(1) / (T(1) + exp(-x));
  }
  template <class T>
  PENSTOCK_HOST_DEVICE static T gradient(T y, T dy) noexcept {
    return dy * y * (T(1) - y);
  }
};

/// x times the normal distribution's function (Hendrycks and Gimpel, "Gaussian error linear units", 2016). Its
/// derivative is one of the input.
struct gelu_activation {
  template <class T>
  PENSTOCK_HOST_DEVICE T operator()(T x) const noexcept {
    return x * below(x);
  }
  template <class T>
  PENSTOCK_HOST_DEVICE static T gradient_at(T x, T dy) noexcept {
    using std::exp;
    const T density = exp(T(-0.5) * x * x) * T(0.39894228040143267794);  // 1 / sqrt(2 pi)
    return dy * (below(x) + x * density);
  }

 private:
  template <class T>
  PENSTOCK_HOST_DEVICE static T below(T x) noexcept {
    using std::erf;
    return T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
  }
};

/// Calls `f` with the function object of `kind`, one whose derivative is a function of its output.
template <class F>
void visit_activation(activation kind, F&& f) {
  switch (kind) {
    case activation::identity: return f(identity_activation{});
    case activation::relu: return f(relu_activation{});
    case activation::tanh: return f(tanh_activation{});
    case activation::sigmoid: return f(sigmoid_activation{});
    case activation::gelu: return;  // a layer of its own
  }
}

}  // namespace penstock::train
