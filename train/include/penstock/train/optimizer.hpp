#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace penstock::train {

/// Stochastic gradient descent, as PyTorch defines it: g += weight_decay * p; v = momentum * v + g;
/// p -= learning_rate * (nesterov ? g + momentum * v : v).
struct sgd {
  double learning_rate = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;

  friend bool operator==(const sgd&, const sgd&) = default;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019):
/// p -= learning_rate * weight_decay * p; m and v are running means of g and g * g, corrected for their start at 0;
/// p -= learning_rate * m / (sqrt(v) + epsilon).
struct adamw {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  friend bool operator==(const adamw&, const adamw&) = default;
};

using optimizer_options = std::variant<sgd, adamw>;

/// "sgd" or "adamw".
std::string_view name_of(const optimizer_options& optimizer) noexcept;
double learning_rate(const optimizer_options& optimizer) noexcept;
/// Values kept for each parameter: 0 (plain SGD), 1 (momentum) or 2 (AdamW).
std::size_t moments(const optimizer_options& optimizer) noexcept;
/// Throws std::invalid_argument with the value that is outside its range.
void check(const optimizer_options& optimizer);
/// "adamw, learning rate 0.001, ...".
std::string to_text(const optimizer_options& optimizer);

}  // namespace penstock::train
