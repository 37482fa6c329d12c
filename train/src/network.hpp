#pragma once

#include "layer.hpp"

#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>

#include <penstock/train/stage.hpp>

#include <memory>
#include <string>
#include <vector>

namespace penstock::train {

enum class passes : std::uint8_t { both, forward };

/// Layers in a row, with the memory between them: each layer's output is kept for backward, gradients of outputs go
/// back and forth between two buffers. Where it only goes forward, so do the outputs, and there are no gradients.
template <class S>
class network {
 public:
  using T = arithmetic<S>;

  network(std::vector<std::unique_ptr<layer<S>>> layers, passes wanted);

  std::size_t inputs() const noexcept { return layers_.front()->inputs(); }
  std::size_t outputs() const noexcept { return layers_.back()->outputs(); }
  /// The largest number of outputs of a layer.
  std::size_t widest() const noexcept;
  std::size_t parameters() const noexcept { return parameters_; }
  const std::vector<std::unique_ptr<layer<S>>>& layers() const noexcept { return layers_; }

  /// Adds the memory for `rows` rows: parameters, gradients, activations.
  void plan(std::size_t rows, gpu::ledger& ledger) const;
  void bind(const gpu::memory& memory);

  /// The logits of the rows of the pass.
  S* forward(const pass<S>& p, const S* x);
  /// Backward from the gradient of the logits, which lies where forward() gave them.
  void backward(const pass<S>& p, const S* x, bool accumulate);

  T* parameter_data() const noexcept { return parameter_data_; }
  T* gradient_data() const noexcept { return gradient_data_; }
  /// The parameters as products take them, to be kept equal to the parameters; null where they are the same.
  S* rounded_data() const noexcept { return rounded_data_; }

 private:
  void plan_outputs(std::size_t rows, gpu::ledger& ledger) const;

  std::vector<std::unique_ptr<layer<S>>> layers_;
  passes wanted_;
  std::size_t parameters_ = 0;
  T* parameter_data_ = nullptr;
  T* gradient_data_ = nullptr;
  S* rounded_data_ = nullptr;
  std::vector<S*> outputs_;
  std::vector<S*> changes_;  // gradient of each layer's output; the last one's takes the place of the logits
};

/// The layers of a multilayer perceptron.
template <class S>
network<S> make_network(const mlp_options& model, passes wanted = passes::both);

/// Adds the arrays of the layers, which lie one after another from `data` on, under "/group/layerN/".
template <class S>
void list_parameters(const network<S>& model, const std::string& group, arithmetic<S>* data,
                     std::vector<state_item>& to);

}  // namespace penstock::train
