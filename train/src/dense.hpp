#pragma once

#include "layer.hpp"

namespace penstock::train {

/// y = activation(x W^T + b), W of shape outputs x inputs.
template <class S>
class dense final : public layer<S> {
 public:
  using T = arithmetic<S>;

  /// `met`: the activation that the outputs meet, here or in a layer that follows, which the initial weights suit.
  dense(std::size_t inputs, std::size_t outputs, activation kind, activation met) noexcept
      : inputs_(inputs), outputs_(outputs), activation_(kind), met_(met) {}

  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }
  std::vector<parameter_shape> parameters() const override;
  void initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
               std::span<T> values) const override;
  void bind(const S* parameters, T* gradients, T* scratch) override;
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  std::size_t inputs_;
  std::size_t outputs_;
  activation activation_;
  activation met_;
  const S* weight_ = nullptr;
  const S* bias_ = nullptr;
  T* weight_gradient_ = nullptr;
  T* bias_gradient_ = nullptr;
};

}  // namespace penstock::train
