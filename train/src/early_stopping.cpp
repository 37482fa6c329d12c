#include <penstock/train/early_stopping.hpp>

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace penstock::train {

std::string_view name_of(quantity q) noexcept { return q == quantity::loss ? "loss" : "accuracy"; }

quantity parse_quantity(std::string_view name) {
  for (const quantity q : {quantity::loss, quantity::accuracy})
    if (name_of(q) == name) return q;
  throw std::invalid_argument(fmt::format("'{}' cannot be watched; there are loss and accuracy", name));
}

void check(const early_stopping& rule) {
  if (!(rule.min_delta >= 0 && std::isfinite(rule.min_delta)))
    throw std::invalid_argument(fmt::format("a least change of {}; it is 0 or more", rule.min_delta));
}

bool judge(const early_stopping& rule, std::uint64_t epoch, const metrics& result, judged_epochs& so_far) noexcept {
  if (so_far.watched != rule.watched) so_far = {.watched = rule.watched};
  const bool first = so_far.epochs == 0;
  const double value = rule.watched == quantity::loss ? result.loss() : result.accuracy();
  const double gain = rule.watched == quantity::loss ? -1 : 1;
  so_far.epochs = epoch + 1;
  // Written so that nothing is better than a NaN but a number.
  const auto above = [&](double other, double by) {
    return gain * (value - other) > by || (std::isnan(other) && !std::isnan(value));
  };
  const bool best = first || above(so_far.best_value, 0);
  if (best) so_far.best = epoch, so_far.best_value = value;
  if (first || above(so_far.reference, rule.min_delta))
    so_far.reference = value, so_far.waited = 0;
  else
    ++so_far.waited;
  return best;
}

bool is_over(const early_stopping& rule, const judged_epochs& so_far) noexcept {
  return rule.patience > 0 && so_far.watched == rule.watched && so_far.waited >= rule.patience;
}

}  // namespace penstock::train
