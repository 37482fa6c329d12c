#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/train/model.hpp>

#include <cmath>

namespace penstock::train {

// Activations and their derivatives as functions of the output y, once for both devices. A NaN stays a NaN.

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

/// Calls `f` with the function object of `kind`.
template <class F>
void visit_activation(activation kind, F&& f) {
  switch (kind) {
    case activation::identity: return f(identity_activation{});
    case activation::relu: return f(relu_activation{});
    case activation::tanh: return f(tanh_activation{});
    case activation::sigmoid: return f(sigmoid_activation{});
  }
}

}  // namespace penstock::train
