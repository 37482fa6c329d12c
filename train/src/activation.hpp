#pragma once

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/train/model.hpp>

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

/// Calls `f` with the function object of `kind`.
template <class F>
void visit_activation(activation kind, F&& f) {
  switch (kind) {
    case activation::identity: return f(identity_activation{});
    case activation::relu: return f(relu_activation{});
  }
}

}  // namespace penstock::train
