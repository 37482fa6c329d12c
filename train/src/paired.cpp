#include "paired.hpp"

namespace penstock::train {
namespace {

/// The pass of both sides as rows of one layer.
template <class S>
pass<S> twice(const pass<S>& p) {
  pass<S> both = p;
  both.rows *= 2;
  return both;
}

}  // namespace

template <class S>
std::vector<parameter_shape> paired<S>::parameters() const {
  std::vector<parameter_shape> all = first_->parameters();
  if (!second_) return all;
  for (parameter_shape& p : all) p.name = "first_" + p.name;
  for (parameter_shape& p : second_->parameters()) all.push_back({"second_" + p.name, p.shape});
  return all;
}

template <class S>
void paired<S>::initial(std::size_t number, std::uint64_t seed, std::uint64_t layer_number, std::uint64_t first,
                        std::span<T> values) const {
  const std::size_t of_first = first_->parameters().size();
  if (number < of_first) return first_->initial(number, seed, layer_number, first, values);
  second_->initial(number - of_first, seed, layer_number + second_side, first, values);
}

template <class S>
std::size_t paired<S>::scratch_elements(std::size_t rows) const noexcept {
  return second_ ? first_->scratch_elements(rows) + second_->scratch_elements(rows)
                 : first_->scratch_elements(2 * rows);
}

template <class S>
void paired<S>::bind(const S* parameters, T* gradients, T* scratch) {
  parameters_ = parameters;
  gradients_ = gradients;
  scratch_ = scratch;
  first_->bind(parameters, gradients, scratch);
}

/// What the second side has of its own follows what the first has; its scratch does so for the rows of the pass.
template <class S>
void paired<S>::bind_second(std::size_t rows) {
  const std::size_t own = parameter_elements(*first_);
  second_->bind(parameters_ + own, gradients_ != nullptr ? gradients_ + own : nullptr,
                scratch_ != nullptr ? scratch_ + first_->scratch_elements(rows) : nullptr);
}

template <class S>
void paired<S>::forward(const pass<S>& p, const S* x, S* y) {
  if (!second_) return first_->forward(twice(p), x, y);
  bind_second(p.rows);
  first_->forward(p, x, y);
  second_->forward(p, x + p.rows * first_->inputs(), y + p.rows * first_->outputs());
}

template <class S>
void paired<S>::backward(const pass<S>& p, const S* x, const S* y, S* dy, S* dx, bool accumulate) {
  if (!second_) return first_->backward(twice(p), x, y, dy, dx, accumulate);
  bind_second(p.rows);
  const std::size_t in = p.rows * first_->inputs(), out = p.rows * first_->outputs();
  first_->backward(p, x, y, dy, dx, accumulate);
  second_->backward(p, x + in, y + out, dy + out, dx != nullptr ? dx + in : nullptr, accumulate);
}

template class paired<float>;
template class paired<double>;
template class paired<bfloat16>;
template class paired<float16>;

}  // namespace penstock::train
