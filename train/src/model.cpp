#include <penstock/train/model.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <stdexcept>

namespace penstock::train {

namespace {

constexpr std::array<std::string_view, 5> activation_names{"identity", "relu", "tanh", "sigmoid", "gelu"};

constexpr std::array<std::string_view, 5> join_names{"none", "difference", "product", "concatenation", "dot"};

/// Of hidden layers of these widths, from `inputs` on; `inputs` becomes what comes out.
std::size_t hidden_parameters(const std::vector<std::size_t>& widths, bool layer_norm, std::size_t& inputs) {
  std::size_t count = 0;
  for (const std::size_t outputs : widths) {
    count += (inputs + 1) * outputs + (layer_norm ? 2 * outputs : 0);
    inputs = outputs;
  }
  return count;
}

std::string chain(std::string text, const std::vector<std::size_t>& widths) {
  for (const std::size_t width : widths) text += fmt::format("-{}", width);
  return text;
}

}  // namespace

std::string_view name_of(activation a) noexcept { return activation_names[static_cast<std::size_t>(a)]; }

activation parse_activation(std::string_view name) {
  for (std::size_t n = 0; n < activation_names.size(); ++n)
    if (activation_names[n] == name) return static_cast<activation>(n);
  throw std::invalid_argument(
      fmt::format("'{}' is no activation; there are {}", name, fmt::join(activation_names, ", ")));
}

std::string_view name_of(join j) noexcept { return join_names[static_cast<std::size_t>(j)]; }

join parse_join(std::string_view name) {
  if (name == "concat") return join::concatenation;
  for (std::size_t n = 0; n < join_names.size(); ++n)
    if (join_names[n] == name) return static_cast<join>(n);
  throw std::invalid_argument(fmt::format("'{}' is no join; there are {}", name, fmt::join(join_names, ", ")));
}

bool has_last_layer(const mlp_options& model) noexcept {
  const pair_options& pair = model.pair;
  return sides(model) == 1 || !pair.head.empty() || joined_width(pair.join, pair.embedding) != model.outputs;
}

std::size_t parameters(const mlp_options& model) noexcept {
  std::size_t inputs = model.inputs, count = hidden_parameters(model.hidden, model.layer_norm, inputs);
  if (sides(model) == 2) {
    count += (inputs + 1) * model.pair.embedding;
    if (!model.pair.shared) count *= 2;
    inputs = joined_width(model.pair.join, model.pair.embedding);
    count += hidden_parameters(model.pair.head, model.layer_norm, inputs);
  }
  return has_last_layer(model) ? count + (inputs + 1) * model.outputs : count;
}

std::string to_text(const mlp_options& model) {
  const pair_options& pair = model.pair;
  std::string text = chain(fmt::format("{}", model.inputs), model.hidden);
  if (sides(model) == 2) {
    text = fmt::format("two {} towers {}-{}, {}", pair.shared ? "shared" : "separate", text, pair.embedding,
                       name_of(pair.join));
    text = chain(fmt::format("{} {}", text, joined_width(pair.join, pair.embedding)), pair.head);
  }
  if (has_last_layer(model)) text += fmt::format("-{}", model.outputs);
  text = fmt::format("{}, {}{}", text, model.layer_norm ? "LayerNorm, " : "", name_of(model.activation));
  return model.dropout > 0 ? fmt::format("{}, dropout {}", text, model.dropout) : text;
}

}  // namespace penstock::train
