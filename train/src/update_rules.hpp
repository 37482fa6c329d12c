#pragma once

#include "step_state.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>

namespace penstock::train {

// What the optimizers do with one parameter, its gradient and its moments, once for both devices.

/// What a step multiplies with, in the arithmetic of the parameters.
template <class T>
struct step_factors {
  T gradient_scale, rate, correction1, correction2;

  PENSTOCK_HOST_DEVICE explicit step_factors(const step_state& s)
      : gradient_scale(static_cast<T>(s.gradient_scale)),
        rate(static_cast<T>(s.learning_rate)),
        correction1(static_cast<T>(s.correction1)),
        correction2(static_cast<T>(s.correction2)) {}
};

template <class T>
struct sgd_rule {
  static constexpr std::size_t most_moments = 1;
  T momentum, weight_decay;
  bool nesterov, keeps_velocity;

  PENSTOCK_HOST_DEVICE void operator()(const step_factors<T>& step, T& p, T g, T& velocity, T&) const {
    T change = g * step.gradient_scale + weight_decay * p;
    if (keeps_velocity) {
      velocity = momentum * velocity + change;
      change = nesterov ? change + momentum * velocity : velocity;
    }
    p -= step.rate * change;
  }
};

template <class T>
struct adamw_rule {
  static constexpr std::size_t most_moments = 2;
  T beta1, beta2, epsilon, weight_decay;

  PENSTOCK_HOST_DEVICE void operator()(const step_factors<T>& step, T& p, T g, T& mean, T& square) const {
    const T gradient = g * step.gradient_scale;
    mean = beta1 * mean + (T(1) - beta1) * gradient;
    square = beta2 * square + (T(1) - beta2) * gradient * gradient;
    using std::sqrt;
    const T root = sqrt(square * step.correction2) + epsilon;
    p = p - step.rate * weight_decay * p - step.rate * step.correction1 * mean / root;
  }
};

/// Parameters with what an update reads and writes beside them. `first` and `second` are null where the optimizer keeps
/// no such moment; `rounded` takes the new parameters too, unless null.
template <class S, class T>
struct updated_arrays {
  std::size_t count = 0;
  T* parameters = nullptr;
  const T* gradients = nullptr;
  T* first = nullptr;
  T* second = nullptr;
  S* rounded = nullptr;
};

}  // namespace penstock::train
