#pragma once

#include "layer.hpp"

namespace penstock::train {

/// y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, mean and variance of each row (Ba, Kiros, Hinton, "Layer
/// normalization", 2016).
template <class S>
class layer_norm final : public layer<S> {
 public:
  using T = arithmetic<S>;

  explicit layer_norm(std::size_t width) noexcept : width_(width) {}

  std::size_t inputs() const noexcept override { return width_; }
  std::size_t outputs() const noexcept override { return width_; }
  std::vector<parameter_shape> parameters() const override { return {{"weight", {width_}}, {"bias", {width_}}}; }
  void initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
               std::span<T> values) const override;
  std::size_t scratch_elements(std::size_t rows) const noexcept override { return 2 * rows; }
  void bind(const S* parameters, T* gradients, T* scratch) override;
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  std::size_t width_;
  const S* weight_ = nullptr;
  const S* bias_ = nullptr;
  T* weight_gradient_ = nullptr;
  T* bias_gradient_ = nullptr;
  T* statistics_ = nullptr;  // mean and reciprocal deviation of each row
};

}  // namespace penstock::train
