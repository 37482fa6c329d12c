#include <penstock/train/model.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <stdexcept>

namespace penstock::train {

namespace {

constexpr std::array<std::string_view, 5> activation_names{"identity", "relu", "tanh", "sigmoid", "gelu"};

}  // namespace

std::string_view name_of(activation a) noexcept { return activation_names[static_cast<std::size_t>(a)]; }

activation parse_activation(std::string_view name) {
  for (std::size_t n = 0; n < activation_names.size(); ++n)
    if (activation_names[n] == name) return static_cast<activation>(n);
  throw std::invalid_argument(
      fmt::format("'{}' is no activation; there are {}", name, fmt::join(activation_names, ", ")));
}

std::size_t parameters(const mlp_options& model) noexcept {
  std::size_t count = 0, inputs = model.inputs;
  for (const std::size_t outputs : model.hidden) {
    count += (inputs + 1) * outputs + (model.layer_norm ? 2 * outputs : 0);
    inputs = outputs;
  }
  return count + (inputs + 1) * model.outputs;
}

std::string to_text(const mlp_options& model) {
  std::string text = fmt::format("{}", model.inputs);
  for (const std::size_t outputs : model.hidden) text += fmt::format("-{}", outputs);
  text =
      fmt::format("{}-{}, {}{}", text, model.outputs, model.layer_norm ? "LayerNorm, " : "", name_of(model.activation));
  return model.dropout > 0 ? fmt::format("{}, dropout {}", text, model.dropout) : text;
}

}  // namespace penstock::train
