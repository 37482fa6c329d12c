#pragma once

#include "layer.hpp"

namespace penstock::train {

/// An activation by itself, of any kind: its derivative may depend on its input, which is kept.
template <class S>
class activation_layer final : public layer<S> {
 public:
  using T = arithmetic<S>;

  activation_layer(std::size_t width, activation kind) noexcept : width_(width), kind_(kind) {}

  std::size_t inputs() const noexcept override { return width_; }
  std::size_t outputs() const noexcept override { return width_; }
  std::vector<parameter_shape> parameters() const override { return {}; }
  void initial(std::size_t, std::uint64_t, std::uint64_t, std::uint64_t, std::span<T>) const override {}
  void bind(const S*, T*, T*) override {}
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  std::size_t width_;
  activation kind_;
};

}  // namespace penstock::train
