#pragma once

#include "layer.hpp"

namespace penstock::train {

/// y = activation(x W^T + b), W of shape outputs x inputs.
template <class T>
class dense final : public layer<T> {
 public:
  dense(std::size_t inputs, std::size_t outputs, activation kind) noexcept
      : inputs_(inputs), outputs_(outputs), activation_(kind) {}

  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }
  std::vector<parameter_shape> parameters() const override;
  void initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
               std::span<T> values) const override;
  void bind(T* parameters, T* gradients) override;
  void forward(const pass<T>& p, const T* x, T* y) override;
  void backward(const pass<T>& p, const T* x, const T* y, T* dy, T* dx, bool accumulate) override;

 private:
  std::size_t inputs_;
  std::size_t outputs_;
  activation activation_;
  T* weight_ = nullptr;
  T* bias_ = nullptr;
  T* weight_gradient_ = nullptr;
  T* bias_gradient_ = nullptr;
};

}  // namespace penstock::train
