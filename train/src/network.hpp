#pragma once

#include "layer.hpp"
#include "output_ring.hpp"

#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>

#include <penstock/train/stage.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::train {

enum class passes : std::uint8_t { both, forward };

/// What a network keeps of its layers' outputs.
struct network_form {
  passes wanted = passes::both;
  /// Of every segment of so many layers the last one's output is kept for backward, and the others are computed again
  /// (Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost", 2016); 0: all are kept.
  std::size_t segment = 0;
  /// Inputs and kept outputs share a few places on the device, and wait in pinned memory for backward; the inputs'
  /// place is then the network's own: see inputs_place().
  bool offload = false;
};

/// Layers in a row, with the memory between them: outputs are kept for backward, gradients of outputs go back and forth
/// between two buffers. Where it only goes forward, so do the outputs, and there are no gradients.
template <class S>
class network {
 public:
  using T = arithmetic<S>;

  network(std::vector<std::unique_ptr<layer<S>>> layers, network_form form);

  std::size_t inputs() const noexcept { return layers_.front()->inputs(); }
  std::size_t outputs() const noexcept { return layers_.back()->outputs(); }
  /// The largest number of outputs of a layer.
  std::size_t widest() const noexcept;
  std::size_t parameters() const noexcept { return parameters_; }
  const std::vector<std::unique_ptr<layer<S>>>& layers() const noexcept { return layers_; }

  /// Adds the memory for `rows` rows: parameters, gradients, activations.
  void plan(std::size_t rows, gpu::ledger& ledger) const;
  void bind(const gpu::memory& memory, gpu::stream_ref stream);
  /// Where the inputs of a pass must lie; null where they may lie anywhere.
  S* inputs_place() const noexcept { return inputs_place_; }

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
  void plan_ring(std::size_t rows, gpu::ledger& ledger) const;
  void bind_ring(const gpu::memory& memory, gpu::stream_ref stream);
  /// Of the inputs, and of the outputs that backward needs, but for the last layer's.
  std::vector<std::size_t> ring_widths() const;
  bool keeps(std::size_t n) const noexcept;
  /// The number in the ring of layer n's output, which is kept.
  std::size_t in_ring(std::size_t n) const noexcept { return n / form_.segment + 1; }
  std::string output_name(std::size_t n) const;
  /// The layers [first, last) on the output of the layer before.
  void forward(const pass<S>& p, const S* x, std::size_t first, std::size_t last);
  /// All of them, with the outputs of a training pass on their way to the host.
  void forward_through_ring(const pass<S>& p, const S* x);
  const S* input_of(std::size_t n, const S* x) const { return n > 0 ? outputs_[n - 1] : x; }

  std::vector<std::unique_ptr<layer<S>>> layers_;
  network_form form_;
  std::size_t parameters_ = 0;
  T* parameter_data_ = nullptr;
  T* gradient_data_ = nullptr;
  S* rounded_data_ = nullptr;
  std::unique_ptr<output_ring> ring_;  // null where nothing is moved
  S* inputs_place_ = nullptr;
  std::vector<S*> outputs_;
  std::vector<S*> changes_;  // gradient of each layer's output; the last one's takes the place of the logits
};

/// The layers of a multilayer perceptron.
template <class S>
network<S> make_network(const mlp_options& model, network_form form = {});

/// Adds the arrays of the layers, which lie one after another from `data` on, under "/group/layerN/".
template <class S>
void list_parameters(const network<S>& model, const std::string& group, arithmetic<S>* data,
                     std::vector<state_item>& to);

}  // namespace penstock::train
