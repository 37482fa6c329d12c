#pragma once

#include "layer.hpp"

namespace penstock::train {

/// Brings two sides of `width` values together: what `paired` layers put out becomes one row.
template <class S>
class join_layer final : public layer<S> {
 public:
  using T = arithmetic<S>;

  join_layer(join kind, std::size_t width) noexcept : kind_(kind), width_(width) {}

  std::size_t inputs() const noexcept override { return 2 * width_; }
  std::size_t outputs() const noexcept override { return joined_width(kind_, width_); }
  std::vector<parameter_shape> parameters() const override { return {}; }
  void initial(std::size_t, std::uint64_t, std::uint64_t, std::uint64_t, std::span<T>) const override {}
  void bind(const S*, T*, T*) override {}
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  join kind_;
  std::size_t width_;
};

}  // namespace penstock::train
