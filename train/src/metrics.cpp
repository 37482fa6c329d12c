#include <penstock/train/metrics.hpp>

#include <cmath>

namespace penstock::train {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

double metrics::loss() const noexcept { return weight_sum > 0 ? loss_sum / weight_sum : 0; }
double metrics::accuracy() const noexcept { return share(correct, rows); }
double metrics::top_k_accuracy() const noexcept { return share(in_top_k, rows); }
double metrics::rmse() const noexcept { return weight_sum > 0 ? std::sqrt(square_sum / weight_sum) : 0; }

double confusion_matrix::precision(std::size_t label) const {
  std::uint64_t all = 0;
  for (std::size_t target = 0; target < classes; ++target) all += of(target, label);
  return share(of(label, label), all);
}

double confusion_matrix::recall(std::size_t label) const {
  std::uint64_t all = 0;
  for (std::size_t predicted = 0; predicted < classes; ++predicted) all += of(label, predicted);
  return share(of(label, label), all);
}

}  // namespace penstock::train
