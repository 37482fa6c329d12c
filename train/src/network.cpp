#include "network.hpp"

#include "dense.hpp"
#include "dropout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace penstock::train {
namespace {

std::string activation_name(std::size_t layer) { return fmt::format("train: activations of layer {}", layer); }
constexpr std::array change_names{"train: gradients of activations, even", "train: gradients of activations, odd"};

}  // namespace

template <class T>
network<T>::network(std::vector<std::unique_ptr<layer<T>>> layers)
    : layers_(std::move(layers)), outputs_(layers_.size()), changes_(layers_.size()) {
  for (const auto& l : layers_) parameters_ += parameter_elements(*l);
}

template <class T>
std::size_t network<T>::widest() const noexcept {
  std::size_t widest = 0;
  for (const auto& l : layers_) widest = std::max(widest, l->outputs());
  return widest;
}

template <class T>
void network<T>::plan(std::size_t rows, gpu::ledger& ledger) const {
  using gpu::memory_kind;
  const std::size_t bytes = parameters_ * sizeof(T);
  ledger.add(memory_kind::device, "train: parameters", bytes, fmt::format("{} of {} bytes", parameters_, sizeof(T)));
  ledger.add(memory_kind::device, "train: gradients", bytes, "sums over the rows of a step");
  std::array<std::size_t, 2> changes{};
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const std::size_t width = layers_[n]->outputs();
    ledger.add(memory_kind::device, activation_name(n), rows * width * sizeof(T),
               fmt::format("{} rows of {}", rows, width));
    if (n + 1 < layers_.size()) changes[n % 2] = std::max(changes[n % 2], width);
  }
  for (std::size_t parity = 0; parity < 2; ++parity)
    if (changes[parity] != 0)
      ledger.add(memory_kind::device, change_names[parity], rows * changes[parity] * sizeof(T),
                 fmt::format("{} rows of {}", rows, changes[parity]));
}

template <class T>
void network<T>::bind(const gpu::memory& memory) {
  const auto at = [&](const std::string& name) {
    return reinterpret_cast<T*>(memory.at(gpu::memory_kind::device, name).data());
  };
  parameter_data_ = at("train: parameters");
  gradient_data_ = at("train: gradients");
  std::size_t first = 0;
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    layers_[n]->bind(parameter_data_ + first, gradient_data_ + first);
    first += parameter_elements(*layers_[n]);
    outputs_[n] = at(activation_name(n));
    changes_[n] = n + 1 < layers_.size() ? at(change_names[n % 2]) : outputs_[n];
  }
}

template <class T>
T* network<T>::forward(const pass<T>& p, const T* x) {
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    layers_[n]->forward(p, x, outputs_[n]);
    x = outputs_[n];
  }
  return outputs_.back();
}

template <class T>
void network<T>::backward(const pass<T>& p, const T* x, bool accumulate) {
  for (std::size_t n = layers_.size(); n-- > 0;)
    layers_[n]->backward(p, n > 0 ? outputs_[n - 1] : x, outputs_[n], changes_[n], n > 0 ? changes_[n - 1] : nullptr,
                         accumulate);
}

template <class T>
network<T> make_network(const mlp_options& model) {
  std::vector<std::unique_ptr<layer<T>>> layers;
  std::size_t inputs = model.inputs;
  for (const std::size_t outputs : model.hidden) {
    layers.push_back(std::make_unique<dense<T>>(inputs, outputs, model.activation));
    if (model.dropout > 0) layers.push_back(std::make_unique<dropout<T>>(outputs, model.dropout, layers.size()));
    inputs = outputs;
  }
  layers.push_back(std::make_unique<dense<T>>(inputs, model.outputs, activation::identity));
  return network<T>(std::move(layers));
}

template class network<float>;
template class network<double>;
template network<float> make_network(const mlp_options&);
template network<double> make_network(const mlp_options&);

}  // namespace penstock::train
