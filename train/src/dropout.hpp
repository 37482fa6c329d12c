#pragma once

#include "layer.hpp"

namespace penstock::train {

/// Sets each value to 0 with a probability, and scales the others so that their mean stays; evaluation passes them on.
/// What is dropped is a function of (seed, step, layer, row of the epoch, column): not of batches, and the same on
/// every device.
template <class S>
class dropout final : public layer<S> {
 public:
  using T = arithmetic<S>;

  dropout(std::size_t width, double probability, std::size_t layer_number) noexcept
      : width_(width), probability_(probability), number_(layer_number) {}

  std::size_t inputs() const noexcept override { return width_; }
  std::size_t outputs() const noexcept override { return width_; }
  std::vector<parameter_shape> parameters() const override { return {}; }
  void initial(std::size_t, std::uint64_t, std::uint64_t, std::uint64_t, std::span<T>) const override {}
  void bind(const S*, T*, T*) override {}
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  std::size_t width_;
  double probability_;
  std::size_t number_;
};

}  // namespace penstock::train
