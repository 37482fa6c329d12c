#pragma once

#include "layer.hpp"

#include <memory>

namespace penstock::train {

/// Added to the number of a layer of the second side, for what is random.
inline constexpr std::uint64_t second_side = std::uint64_t{1} << 32;

/// A layer for both sides of each row. The rows of the first side lie before those of the second, in inputs and
/// outputs. One layer that is shared sees them all as rows of its own, so that its gradients are one sum, in one order.
/// Two layers see a side each, and have parameters of their own.
template <class S>
class paired final : public layer<S> {
 public:
  using T = arithmetic<S>;

  /// `second` null: `first` is shared.
  explicit paired(std::unique_ptr<layer<S>> first, std::unique_ptr<layer<S>> second = nullptr) noexcept
      : first_(std::move(first)), second_(std::move(second)) {}

  std::size_t inputs() const noexcept override { return 2 * first_->inputs(); }
  std::size_t outputs() const noexcept override { return 2 * first_->outputs(); }
  std::vector<parameter_shape> parameters() const override;
  void initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
               std::span<T> values) const override;
  std::size_t scratch_elements(std::size_t rows) const noexcept override;
  void bind(const S* parameters, T* gradients, T* scratch) override;
  void forward(const pass<S>& p, const S* x, S* y) override;
  void backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) override;

 private:
  void bind_second(std::size_t rows);

  std::unique_ptr<layer<S>> first_, second_;
  const S* parameters_ = nullptr;
  T* gradients_ = nullptr;
  T* scratch_ = nullptr;
};

}  // namespace penstock::train
