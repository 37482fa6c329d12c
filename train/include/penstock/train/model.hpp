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

/// How two inputs come together.
enum class join : std::uint8_t {
  none,           ///< there is one input
  difference,     ///< the first less the second
  product,        ///< value by value
  concatenation,  ///< one beside the other
  dot             ///< one value: the sum of the products
};
std::string_view name_of(join) noexcept;
/// Throws std::invalid_argument with the names there are; "concat" is one too.
join parse_join(std::string_view name);
/// Values that two sides of `width` values are joined to.
constexpr std::size_t joined_width(join kind, std::size_t width) noexcept {
  return kind == join::dot ? 1 : kind == join::concatenation ? 2 * width : width;
}

/// Two inputs head to head, for comparison and ranking. Each goes through a tower: the model's hidden layers and a
/// dense layer of `embedding` outputs without activation. What comes out is joined, and goes through the layers of the
/// head to the outputs. Without a head the joined values are the outputs where there are as many: embeddings of one
/// value and their difference compare the scores of the two.
struct pair_options {
  train::join join = join::none;
  bool shared = true;               ///< both towers have the same weights
  std::size_t embedding = 64;       ///< outputs of each tower
  std::vector<std::size_t> head{};  ///< outputs of each hidden layer after the join

  friend bool operator==(const pair_options&, const pair_options&) = default;
};

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

  pair_options pair{};  ///< two inputs of `inputs` elements each

  friend bool operator==(const mlp_options&, const mlp_options&) = default;
};

/// Rows of inputs that make a row of the model: 2 where it compares.
constexpr std::size_t sides(const mlp_options& model) noexcept { return model.pair.join == join::none ? 1 : 2; }
/// A last dense layer leads to the outputs; else the joined values are the outputs.
bool has_last_layer(const mlp_options& model) noexcept;
/// Weights and biases of all layers, LayerNorm's included.
std::size_t parameters(const mlp_options& model) noexcept;
/// "784-512-256-10, relu".
std::string to_text(const mlp_options& model);

}  // namespace penstock::train
