#include <penstock/train/model.hpp>

#include <fmt/format.h>

namespace penstock::train {

std::string_view name_of(activation a) noexcept { return a == activation::relu ? "relu" : "identity"; }

std::size_t parameters(const mlp_options& model) noexcept {
  std::size_t count = 0, inputs = model.inputs;
  for (const std::size_t outputs : model.hidden) {
    count += (inputs + 1) * outputs;
    inputs = outputs;
  }
  return count + (inputs + 1) * model.classes;
}

std::string to_text(const mlp_options& model) {
  std::string text = fmt::format("{}", model.inputs);
  for (const std::size_t outputs : model.hidden) text += fmt::format("-{}", outputs);
  return fmt::format("{}-{}, {}", text, model.classes, name_of(model.activation));
}

}  // namespace penstock::train
