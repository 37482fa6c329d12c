#include <penstock/train/metrics.hpp>

#include <cmath>
#include <limits>

namespace penstock::train {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

double share(std::uint64_t part, std::uint64_t whole, double of_none) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : of_none;
}

}  // namespace

double metrics::loss() const noexcept { return weight_sum > 0 ? loss_sum / weight_sum : nothing; }
double metrics::accuracy() const noexcept { return share(correct, rows, nothing); }
double metrics::top_k_accuracy() const noexcept { return share(in_top_k, rows, nothing); }
double metrics::rmse() const noexcept { return weight_sum > 0 ? std::sqrt(square_sum / weight_sum) : nothing; }

double confusion_matrix::precision(std::size_t label) const {
  std::uint64_t all = 0;
  for (std::size_t target = 0; target < classes; ++target) all += of(target, label);
  return share(of(label, label), all, 0);
}

double confusion_matrix::recall(std::size_t label) const {
  std::uint64_t all = 0;
  for (std::size_t predicted = 0; predicted < classes; ++predicted) all += of(label, predicted);
  return share(of(label, label), all, 0);
}

}  // namespace penstock::train
