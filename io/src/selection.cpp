#include "selection.hpp"

#include <algorithm>
#include <array>

namespace penstock::io {
namespace {

struct index_range {
  std::uint64_t start = 0, count = 0;
};

/// Along one axis, what visit_boxes makes of the `count` indices from the first one on.
std::vector<index_range> ranges_of(const index_blocks& axis, std::uint64_t first, std::uint64_t count,
                                   std::uint64_t unit, std::uint64_t shape) {
  std::vector<index_range> ranges;
  const auto last = first + std::min(count, std::max(axis.below(shape), first) - first);
  for (auto n = first; n < last;) {
    const auto end_of_block = last - n > axis.block - n % axis.block ? n + (axis.block - n % axis.block) : last;
    const auto begin = axis.at(n) / unit * unit;
    const auto end_unit = axis.at(end_of_block - 1) / unit * unit;
    const auto end = shape - end_unit > unit ? end_unit + unit : shape;
    if (!ranges.empty() && ranges.back().start + ranges.back().count >= begin)
      ranges.back().count = end - ranges.back().start;
    else
      ranges.push_back({begin, end - begin});
    n = std::max(end_of_block, axis.below(end));
  }
  return ranges;
}

std::optional<std::uint64_t> values_of(std::span<const index_blocks> axes) {
  std::uint64_t values = 1;
  for (const auto& axis : axes)
    if (__builtin_mul_overflow(values, axis.count, &values)) return std::nullopt;
  return values;
}

}  // namespace

std::uint64_t index_blocks::below(std::uint64_t index) const noexcept {
  if (index <= start) return 0;
  const auto n = index - start;
  return std::min(count, n / stride * block + std::min(n % stride, block));
}

bool lattice::empty() const noexcept {
  return std::any_of(count.begin(), count.begin() + static_cast<std::ptrdiff_t>(axes.size()),
                     [](auto n) { return n == 0; });
}

void visit_boxes(const lattice& part, const extents& unit, const extents& shape,
                 const std::function<void(const box&)>& visit) {
  const auto rank = part.axes.size();
  std::array<std::vector<index_range>, max_rank> ranges;
  for (std::size_t k = 0; k < rank; ++k) {
    ranges[k] = ranges_of(part.axes[k], part.first[k], part.count[k], unit[k], shape[k]);
    if (ranges[k].empty()) return;
  }
  std::array<std::size_t, max_rank> at{};
  box found;
  found.rank = rank;
  for (std::size_t k = rank + 1; k > 0;) {
    for (std::size_t j = 0; j < rank; ++j) {
      found.start[j] = ranges[j][at[j]].start;
      found.count[j] = ranges[j][at[j]].count;
    }
    visit(found);
    for (k = rank; k > 0 && ++at[k - 1] == ranges[k - 1].size(); --k) at[k - 1] = 0;
  }
}

selection selection::all(std::span<const std::uint64_t> shape) {
  selection made(shape.size());
  std::vector<index_blocks> axes(shape.size());
  for (std::size_t k = 0; k < shape.size(); ++k) axes[k].count = shape[k];
  made.add(axes);
  return made;
}

bool selection::add(std::span<const index_blocks> axes) {
  for (auto axis : axes) {
    if (axis.stride == 0 || axis.block == 0 || axis.block > axis.stride) return false;
    if (axis.count == 0) continue;
    std::uint64_t last = 0;
    const auto n = axis.count - 1;
    if (__builtin_mul_overflow(n / axis.block, axis.stride, &last) ||
        __builtin_add_overflow(last, n % axis.block, &last) || __builtin_add_overflow(last, axis.start, &last) ||
        last == index_blocks::endless)
      return false;
  }
  axes_.insert(axes_.end(), axes.begin(), axes.end());
  return true;
}

std::optional<std::uint64_t> selection::size() const noexcept {
  std::uint64_t all = 0;
  for (std::size_t n = 0; n < parts(); ++n) {
    const auto values = values_of(axes(n));
    if (!values || __builtin_add_overflow(all, *values, &all)) return std::nullopt;
  }
  return all;
}

lattice selection::within(std::size_t part, const box& wanted) const noexcept {
  lattice found;
  found.axes = axes(part);
  for (std::size_t k = 0; k < rank_; ++k) {
    found.first[k] = found.axes[k].below(wanted.start[k]);
    found.count[k] = found.axes[k].below(wanted.start[k] + wanted.count[k]) - found.first[k];
  }
  return found;
}

lattice selection::whole(std::size_t part) const noexcept {
  lattice found;
  found.axes = axes(part);
  for (std::size_t k = 0; k < rank_; ++k) found.count[k] = found.axes[k].count;
  return found;
}

std::uint64_t selection::before(const extents& place) const noexcept {
  std::uint64_t all = 0;
  for (std::size_t n = 0; n < parts(); ++n) {
    const auto mine = axes(n);
    auto each = *values_of(mine);  // values for each index along the axes so far
    for (std::size_t k = 0; k < rank_ && each > 0; ++k) {
      each /= mine[k].count;
      all += mine[k].below(place[k]) * each;
      if (!mine[k].contains(place[k])) break;
    }
  }
  return all;
}

extents selection::place(std::uint64_t n) const noexcept {
  extents found{};
  if (parts() == 1) {
    for (std::size_t k = rank_; k > 0; --k) {
      const auto& axis = axes(0)[k - 1];
      found[k - 1] = axis.at(n % axis.count);
      n /= axis.count;
    }
    return found;
  }
  // The last place with no more than n values before it, axis by axis.
  for (std::size_t k = 0; k < rank_; ++k) {
    std::uint64_t low = 0, high = 0;
    for (std::size_t p = 0; p < parts(); ++p)
      if (const auto& axis = axes(p)[k]; axis.count > 0) high = std::max(high, axis.at(axis.count - 1));
    while (low < high) {
      found[k] = low + (high - low) / 2 + 1;
      if (before(found) <= n)
        low = found[k];
      else
        high = found[k] - 1;
    }
    found[k] = low;
  }
  return found;
}

}  // namespace penstock::io
