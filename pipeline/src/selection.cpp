#include <penstock/pipeline/selection.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace penstock::pipeline {
namespace {

split checked(split how) {
  if (!(how.validation >= 0 && how.validation <= 1))
    throw std::invalid_argument(
        fmt::format("a validation part of {} of the rows is not possible; give a number from 0 to 1", how.validation));
  return how;
}

}  // namespace

selection::selection(std::vector<extent> ranges) { criteria_.emplace_back(ranges_of_rows{std::move(ranges)}); }

selection::selection(std::vector<std::uint64_t> rows, std::optional<std::uint64_t> of_rows) {
  ranges_of_rows some{.ranges = {}, .of_rows = of_rows};
  for (const std::uint64_t row : rows) {
    if (!some.ranges.empty() && some.ranges.back().first + some.ranges.back().count == row)
      ++some.ranges.back().count;
    else
      some.ranges.push_back({row, 1});
  }
  criteria_.emplace_back(std::move(some));
}

selection operator&(selection a, const selection& b) {
  a.criteria_.insert(a.criteria_.end(), b.criteria_.begin(), b.criteria_.end());
  return a;
}

selection where(std::string field, std::function<bool(double)> keep) {
  if (!keep) throw std::invalid_argument(fmt::format("the condition on field '{}' has no function", field));
  return selection(selection::rows_that{std::move(field), std::move(keep)});
}

selection training_part(split how) { return selection(selection::part_of{checked(std::move(how)), false}); }
selection validation_part(split how) { return selection(selection::part_of{checked(std::move(how)), true}); }

}  // namespace penstock::pipeline
