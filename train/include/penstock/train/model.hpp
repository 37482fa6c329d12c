#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train {

/// What a dense layer does to its sums.
enum class activation : std::uint8_t { identity, relu, tanh, sigmoid, gelu };
std::string_view name_of(activation) noexcept;
/// Throws std::invalid_argument with the names there are.
activation parse_activation(std::string_view name);

/// A multilayer perceptron: dense layers with an activation, and a last dense layer without one: what the loss makes of
/// its outputs (logits of classes, or values) is the loss's affair. Without hidden layers it is linear regression, or
/// with softmax cross-entropy softmax regression.
struct mlp_options {
  std::size_t inputs = 0;                     ///< elements of a row of x
  std::vector<std::size_t> hidden{512, 256};  ///< outputs of each hidden layer
  std::size_t outputs = 0;                    ///< of the last layer: classes, or values of a target
  train::activation activation = activation::relu;
  bool layer_norm = false;  ///< each row is normalised between a hidden layer's sums and its activation
  double dropout = 0;       ///< probability that an output of a hidden layer is set to 0 in training

  friend bool operator==(const mlp_options&, const mlp_options&) = default;
};

/// Weights and biases of all layers, LayerNorm's included.
std::size_t parameters(const mlp_options& model) noexcept;
/// "784-512-256-10, relu".
std::string to_text(const mlp_options& model);

}  // namespace penstock::train
