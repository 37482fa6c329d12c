#include <penstock/pipeline/price.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t rows_looked_at = 1 << 20;
constexpr std::uint64_t least_batches = 16;

double entropy_term(double part) { return part > 0 ? -part * std::log(part) : 0; }

double log_choose(double n, double k) { return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1); }

/// The mean of -(k/n) ln(k/n) where k of n drawn rows are of a class that has `own` of `all` rows.
double mean_term(double own, double all, double n) {
  const double least = std::max(0.0, n - (all - own)), most = std::min(n, own);
  const double mode = std::clamp(std::floor((n + 1) * (own + 1) / (all + 2)), least, most);
  const double at_mode = std::exp(log_choose(own, mode) + log_choose(all - own, n - mode) - log_choose(all, n));
  constexpr double negligible = 1e-18;
  // From the mode to both sides, each probability from its neighbour's.
  double mean = at_mode * entropy_term(mode / n);
  double p = at_mode;
  for (double k = mode; k < most && p > negligible; ++k) {
    p *= (own - k) * (n - k) / ((k + 1) * (all - own - n + k + 1));
    mean += p * entropy_term((k + 1) / n);
  }
  p = at_mode;
  for (double k = mode; k > least && p > negligible; --k) {
    p *= k * (all - own - n + k) / ((own - k + 1) * (n - k + 1));
    mean += p * entropy_term((k - 1) / n);
  }
  return mean;
}

double entropy_of(std::vector<std::uint32_t>& classes) {
  std::sort(classes.begin(), classes.end());
  double entropy = 0;
  for (auto at = classes.begin(); at != classes.end();) {
    const auto end = std::upper_bound(at, classes.end(), *at);
    entropy += entropy_term(static_cast<double>(end - at) / static_cast<double>(classes.size()));
    at = end;
  }
  return entropy;
}

std::vector<std::uint64_t> count(std::span<const std::uint32_t> classes) {
  std::vector<std::uint64_t> counts;
  for (const std::uint32_t one : classes) {
    if (one == no_class) continue;
    if (one >= counts.size()) counts.resize(std::size_t{one} + 1, 0);
    ++counts[one];
  }
  return counts;
}

}  // namespace

double uniform_entropy(std::span<const std::uint64_t> rows_of_classes, std::uint64_t drawn) {
  std::map<std::uint64_t, std::uint64_t> classes_of_size;
  std::uint64_t all = 0;
  for (const std::uint64_t rows : rows_of_classes) all += rows, ++classes_of_size[rows];
  drawn = std::min(drawn, all);
  double entropy = 0;
  for (const auto& [rows, classes] : classes_of_size)
    if (rows > 0 && drawn > 0)
      entropy += static_cast<double>(classes) *
                 mean_term(static_cast<double>(rows), static_cast<double>(all), static_cast<double>(drawn));
  return entropy;
}

double mixing(const order& rows, std::span<const std::uint32_t> classes, std::uint64_t batch_rows,
              std::uint64_t epoch) {
  batch_rows = std::min(batch_rows, rows.rows());
  if (batch_rows == 0) return 1;
  const double uniform = uniform_entropy(count(classes), batch_rows);
  if (!(uniform > 0)) return 1;
  const std::uint64_t batches = rows.rows() / batch_rows;
  const std::uint64_t looked_at = std::min(batches, std::max(rows_looked_at / batch_rows, least_batches));
  double sum = 0;
  std::vector<std::uint32_t> of_batch(batch_rows);
  for (std::uint64_t i = 0; i < looked_at; ++i) {
    const std::uint64_t first = i * batches / looked_at * batch_rows;
    for (std::uint64_t k = 0; k < batch_rows; ++k) of_batch[k] = classes[rows.row(epoch, first + k)];
    sum += entropy_of(of_batch);
  }
  return sum / static_cast<double>(looked_at) / uniform;
}

}  // namespace penstock::pipeline
