#include "network.hpp"

#include "activation_layer.hpp"
#include "dense.hpp"
#include "dropout.hpp"
#include "join_layer.hpp"
#include "layer_norm.hpp"
#include "paired.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace penstock::train {
namespace {

std::string activation_name(std::size_t layer) { return fmt::format("train: activations of layer {}", layer); }
std::string recomputed_name(std::size_t place) { return fmt::format("train: activations computed again, {}", place); }
std::string scratch_name(std::size_t layer) { return fmt::format("train: scratch of layer {}", layer); }
constexpr std::array output_names{"train: activations, even", "train: activations, odd"};
std::string place_name(std::size_t place) { return fmt::format("train: ring of activations, place {}", place); }
constexpr const char* inputs_name = "train: inputs that wait for backward";
constexpr const char* rounded_name = "train: parameters, rounded";
constexpr std::array change_names{"train: gradients of activations, even", "train: gradients of activations, odd"};

}  // namespace

template <class S>
network<S>::network(std::vector<std::unique_ptr<layer<S>>> layers, network_form form)
    : layers_(std::move(layers)), form_(form), outputs_(layers_.size()), changes_(layers_.size()) {
  if (form_.segment == 0) form_.segment = 1;  // segments of one layer keep all
  form_.segment = std::min(form_.segment, layers_.size());
  for (const auto& l : layers_) parameters_ += parameter_elements(*l);
}

template <class S>
std::size_t network<S>::widest() const noexcept {
  std::size_t widest = 0;
  for (const auto& l : layers_) widest = std::max(widest, l->outputs());
  return widest;
}

template <class S>
void network<S>::plan(std::size_t rows, gpu::ledger& ledger) const {
  using gpu::memory_kind;
  const std::size_t bytes = parameters_ * sizeof(T);
  ledger.add(memory_kind::device, "train: parameters", bytes, fmt::format("{} of {} bytes", parameters_, sizeof(T)));
  if (form_.wanted == passes::both)
    ledger.add(memory_kind::device, "train: gradients", bytes, "sums over the rows of a step");
  if (!std::is_same_v<S, T>)
    ledger.add(memory_kind::device, rounded_name, parameters_ * sizeof(S),
               fmt::format("{} of {} bytes", parameters_, sizeof(S)));
  for (std::size_t n = 0; n < layers_.size(); ++n)
    if (const std::size_t own = layers_[n]->scratch_elements(rows); own != 0)
      ledger.add(memory_kind::device, scratch_name(n), own * sizeof(T));
  plan_outputs(rows, ledger);
}

template <class S>
void network<S>::plan_outputs(std::size_t rows, gpu::ledger& ledger) const {
  const auto add = [&](std::string name, std::size_t width) {
    ledger.add(gpu::memory_kind::device, std::move(name), rows * width * sizeof(S),
               fmt::format("{} rows of {}", rows, width));
  };
  std::array<std::size_t, 2> widest{};
  std::vector<std::size_t> recomputed(form_.segment);
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const std::size_t width = layers_[n]->outputs();
    if (form_.wanted == passes::both) {
      if (keeps(n)) {
        if (!form_.offload || n + 1 == layers_.size()) add(output_name(n), width);
      } else {
        recomputed[n % form_.segment] = std::max(recomputed[n % form_.segment], width);
      }
    }
    // The gradient of the last layer's output takes its place.
    if (form_.wanted == passes::forward || n + 1 < layers_.size()) widest[n % 2] = std::max(widest[n % 2], width);
  }
  for (std::size_t n = 0; n < recomputed.size(); ++n)
    if (recomputed[n] != 0) add(recomputed_name(n), recomputed[n]);
  for (std::size_t parity = 0; parity < 2; ++parity)
    if (widest[parity] != 0)
      add(form_.wanted == passes::both ? change_names[parity] : output_names[parity], widest[parity]);
  if (form_.offload) plan_ring(rows, ledger);
}

template <class S>
std::vector<std::size_t> network<S>::ring_widths() const {
  std::vector<std::size_t> widths{inputs()};
  for (std::size_t n = 0; n + 1 < layers_.size(); ++n)
    if (keeps(n)) widths.push_back(layers_[n]->outputs());
  return widths;
}

template <class S>
void network<S>::plan_ring(std::size_t rows, gpu::ledger& ledger) const {
  const std::vector<std::size_t> widths = ring_widths();
  std::array<std::size_t, output_places::places> widest{};
  for (std::size_t k = 0; k < widths.size(); ++k) {
    std::size_t& place = widest[output_places::place(k)];
    place = std::max(place, widths[k]);
  }
  const auto add = [&](gpu::memory_kind kind, std::string name, std::size_t width) {
    ledger.add(kind, std::move(name), rows * width * sizeof(S), fmt::format("{} rows of {}", rows, width));
  };
  for (std::size_t place = 0; place < widest.size(); ++place)
    if (widest[place] != 0) add(gpu::memory_kind::device, place_name(place), widest[place]);
  for (std::size_t k = 0; k < output_places{widths.size()}.moved(); ++k)
    add(gpu::memory_kind::pinned, k == 0 ? inputs_name : activation_name(k * form_.segment - 1), widths[k]);
}

template <class S>
bool network<S>::keeps(std::size_t n) const noexcept {
  return (n + 1) % form_.segment == 0 || n + 1 == layers_.size();
}

template <class S>
std::string network<S>::output_name(std::size_t n) const {
  if (form_.wanted == passes::forward) return output_names[n % 2];
  if (!keeps(n)) return recomputed_name(n % form_.segment);
  return form_.offload && n + 1 < layers_.size() ? place_name(output_places::place(in_ring(n))) : activation_name(n);
}

template <class S>
void network<S>::bind(const gpu::memory& memory, gpu::stream_ref stream) {
  const auto at = [&](const std::string& name) { return memory.at(gpu::memory_kind::device, name).data(); };
  parameter_data_ = reinterpret_cast<T*>(at("train: parameters"));
  if (form_.wanted == passes::both) gradient_data_ = reinterpret_cast<T*>(at("train: gradients"));
  const S* factors = nullptr;
  if constexpr (std::is_same_v<S, T>)
    factors = parameter_data_;
  else
    factors = rounded_data_ = reinterpret_cast<S*>(at(rounded_name));
  std::size_t first = 0;
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    T* const scratch = layers_[n]->scratch_elements(1) != 0 ? reinterpret_cast<T*>(at(scratch_name(n))) : nullptr;
    layers_[n]->bind(factors + first, gradient_data_ != nullptr ? gradient_data_ + first : nullptr, scratch);
    first += parameter_elements(*layers_[n]);
    const bool kept = form_.wanted == passes::both;
    outputs_[n] = reinterpret_cast<S*>(at(output_name(n)));
    changes_[n] = kept && n + 1 < layers_.size() ? reinterpret_cast<S*>(at(change_names[n % 2])) : outputs_[n];
  }
  if (form_.offload) bind_ring(memory, stream);
}

template <class S>
void network<S>::bind_ring(const gpu::memory& memory, gpu::stream_ref stream) {
  const std::vector<std::size_t> widths = ring_widths();
  const output_places places{widths.size()};
  std::vector<output_ring::output> outputs;
  for (std::size_t k = 0; k < widths.size(); ++k) {
    outputs.push_back({.on_device = memory.at(gpu::memory_kind::device, place_name(output_places::place(k))).data(),
                       .row_bytes = widths[k] * sizeof(S)});
    if (k < places.moved())
      outputs.back().on_host =
          memory.at(gpu::memory_kind::pinned, k == 0 ? inputs_name : activation_name(k * form_.segment - 1)).data();
  }
  inputs_place_ = reinterpret_cast<S*>(outputs.front().on_device);
  if (places.moved() > 0) ring_ = std::make_unique<output_ring>(stream, std::move(outputs));
}

template <class S>
void network<S>::forward(const pass<S>& p, const S* x, std::size_t first, std::size_t last) {
  for (std::size_t n = first; n < last; ++n) layers_[n]->forward(p, input_of(n, x), outputs_[n]);
}

template <class S>
S* network<S>::forward(const pass<S>& p, const S* x) {
  if (ring_ && p.training)
    forward_through_ring(p, x);
  else
    forward(p, x, 0, layers_.size());
  return outputs_.back();
}

template <class S>
void network<S>::forward_through_ring(const pass<S>& p, const S* x) {
  ring_->written(0, p.rows);
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const bool moves = keeps(n) && n + 1 < layers_.size();
    if (moves) ring_->before_writing(in_ring(n));
    forward(p, x, n, n + 1);
    if (moves) ring_->written(in_ring(n), p.rows);
  }
}

template <class S>
void network<S>::backward(const pass<S>& p, const S* x, bool accumulate) {
  for (std::size_t last = layers_.size(); last > 0;) {
    const std::size_t first = (last - 1) / form_.segment * form_.segment, from = first / form_.segment;
    if (ring_) ring_->before_reading(from);
    // The last segment's outputs are still there.
    if (last != layers_.size()) {
      p.on.join();
      forward(p, x, first, last - 1);
    }
    for (std::size_t n = last; n-- > first;) {
      // The gradient of layer n's input takes the place of that of layer n + 1's output, and the gradient of its
      // weights may still be made of that.
      if (n + 1 < layers_.size()) p.on.join();
      layers_[n]->backward(p, input_of(n, x), outputs_[n], changes_[n], n > 0 ? changes_[n - 1] : nullptr, accumulate);
    }
    if (ring_) p.on.join();
    if (ring_ && last != layers_.size()) ring_->done_with(from + 1, p.rows);
    last = first;
  }
  p.on.join();
}

namespace {

/// Adds hidden layers of these widths to `add`, which takes what makes a layer, by its number, and whether the two
/// sides must differ in it; `inputs` becomes what comes out.
template <class S, class Add>
void add_hidden(const mlp_options& model, const std::vector<std::size_t>& widths, std::size_t& inputs, const Add& add) {
  constexpr bool same = false, different = true;
  for (const std::size_t outputs : widths) {
    // An activation whose derivative is a function of its output follows the product in the same place.
    const bool apart = model.layer_norm || model.activation == activation::gelu;
    const auto fused = apart ? activation::identity : model.activation;
    add([&](std::size_t) { return std::make_unique<dense<S>>(inputs, outputs, fused, model.activation); }, same);
    if (model.layer_norm) add([&](std::size_t) { return std::make_unique<layer_norm<S>>(outputs); }, same);
    if (apart) add([&](std::size_t) { return std::make_unique<activation_layer<S>>(outputs, model.activation); }, same);
    if (model.dropout > 0)
      add([&](std::size_t number) { return std::make_unique<dropout<S>>(outputs, model.dropout, number); }, different);
    inputs = outputs;
  }
}

}  // namespace

template <class S>
network<S> make_network(const mlp_options& model, network_form form) {
  std::vector<std::unique_ptr<layer<S>>> layers;
  const auto single = [&](const auto& make, bool) { layers.push_back(make(layers.size())); };
  const auto both = [&](const auto& make, bool different) {
    std::unique_ptr<layer<S>> first = make(layers.size()), second;
    if (different || !model.pair.shared) second = make(layers.size() + second_side);
    layers.push_back(std::make_unique<paired<S>>(std::move(first), std::move(second)));
  };
  std::size_t inputs = model.inputs;
  const auto last = [&](std::size_t outputs) {
    return [&, outputs](std::size_t) {
      return std::make_unique<dense<S>>(inputs, outputs, activation::identity, activation::identity);
    };
  };
  if (sides(model) == 1) {
    add_hidden<S>(model, model.hidden, inputs, single);
  } else {
    const pair_options& pair = model.pair;
    add_hidden<S>(model, model.hidden, inputs, both);
    both(last(pair.embedding), false);
    layers.push_back(std::make_unique<join_layer<S>>(pair.join, pair.embedding));
    inputs = joined_width(pair.join, pair.embedding);
    add_hidden<S>(model, pair.head, inputs, single);
  }
  if (has_last_layer(model)) single(last(model.outputs), false);
  return network<S>(std::move(layers), form);
}

template <class S>
void list_parameters(const network<S>& model, const std::string& group, arithmetic<S>* data,
                     std::vector<state_item>& to) {
  for (std::size_t n = 0; n < model.layers().size(); ++n)
    for (const parameter_shape& p : model.layers()[n]->parameters()) {
      to.push_back({fmt::format("/{}/layer{}/{}", group, n, p.name), type_of<arithmetic<S>>, p.shape,
                    reinterpret_cast<std::byte*>(data)});
      std::size_t elements = 1;
      for (const std::uint64_t extent : p.shape) elements *= extent;
      data += elements;
    }
}

#define PENSTOCK_INSTANTIATE(S)                                       \
  template class network<S>;                                          \
  template network<S> make_network(const mlp_options&, network_form); \
  template void list_parameters(const network<S>&, const std::string&, arithmetic<S>*, std::vector<state_item>&);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
PENSTOCK_INSTANTIATE(bfloat16)
PENSTOCK_INSTANTIATE(float16)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train
