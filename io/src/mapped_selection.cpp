#include "mapped_selection.hpp"

#include <algorithm>
#include <array>

namespace penstock::io {
namespace {

constexpr hsize_t most_boxes = hsize_t{1} << 16, boxes_at_once = 4096;
constexpr auto endless = index_blocks::endless;
static_assert(H5S_UNLIMITED == endless);

}  // namespace

mapped_selection::mapped_selection(hid_t space) {
  const auto type = H5Sget_select_type(space);
  all_ = type == H5S_SEL_ALL;  // whatever its rank: a file does not keep it
  const int rank = H5Sget_simple_extent_ndims(space);
  if (all_ || rank < 1) return;
  if (type == H5S_SEL_NONE) values_ = selection(static_cast<std::size_t>(rank));
  if (type != H5S_SEL_HYPERSLABS) return;
  if (H5Sis_regular_hyperslab(space) > 0)
    read_regular(space);
  else
    read_boxes(space);
  H5Eclear2(H5E_DEFAULT);
}

void mapped_selection::read_regular(hid_t space) {
  std::array<hsize_t, max_rank> start{}, stride{}, count{}, block{};
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
  checked(H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(), block.data()),
          "a mapping's selection cannot be read");
  std::vector<index_blocks> axes(rank);
  for (std::size_t k = 0; k < rank; ++k) {
    axes[k].start = start[k];
    if (count[k] == H5S_UNLIMITED || block[k] == H5S_UNLIMITED) {
      if (endless_ || (block[k] == H5S_UNLIMITED && count[k] != 1)) return endless_.reset();
      endless_ = k;
      axes[k].count = endless;
      if (block[k] == H5S_UNLIMITED) continue;
      block_ = block[k];
      step_ = stride[k];
    } else if (__builtin_mul_overflow(count[k], block[k], &axes[k].count)) {
      return endless_.reset();
    }
    if (count[k] > 1 && stride[k] != block[k]) {
      axes[k].stride = stride[k];
      axes[k].block = block[k];
    }
  }
  auto found = selection(rank);
  if (endless_) {
    auto finite = axes;
    finite[*endless_].count = 0;
    if (found.add(finite)) axes_ = std::move(axes);
    if (axes_.empty()) endless_.reset();
  } else if (found.add(axes)) {
    values_ = std::move(found);
  }
}

void mapped_selection::read_boxes(hid_t space) {
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
  const auto boxes = H5Sget_select_hyper_nblocks(space);
  if (boxes < 0 || static_cast<hsize_t>(boxes) > most_boxes) return;
  auto found = selection(rank);
  std::vector<hsize_t> corners(std::min(static_cast<hsize_t>(boxes), boxes_at_once) * 2 * rank);
  std::vector<index_blocks> axes(rank);
  for (hsize_t first = 0; first < static_cast<hsize_t>(boxes); first += boxes_at_once) {
    const auto some = std::min(static_cast<hsize_t>(boxes) - first, boxes_at_once);
    checked(H5Sget_select_hyper_blocklist(space, first, some, corners.data()), "a mapping's selection cannot be read");
    for (hsize_t n = 0; n < some; ++n) {
      const auto* const from = corners.data() + n * 2 * rank;
      for (std::size_t k = 0; k < rank; ++k) {
        if (from[rank + k] < from[k]) return;
        axes[k].start = from[k];
        axes[k].count = from[rank + k] - from[k] + 1;
      }
      if (!found.add(axes)) return;
    }
  }
  values_ = std::move(found);
}

box mapped_selection::bounds(std::size_t rank) const noexcept {
  box around;
  around.rank = rank;
  if (endless_ ? axes_.size() != rank : !values_ || values_->rank() != rank) {
    around.count.fill(endless);
    return around;
  }
  const auto parts = values_ ? values_->parts() : 1;
  for (std::size_t n = 0; n < parts; ++n) {
    const auto axes = values_ ? values_->axes(n) : std::span(axes_);
    for (std::size_t k = 0; k < rank; ++k) {
      const auto& axis = axes[k];
      const auto end = axis.count == 0 ? axis.start : axis.count == endless ? endless : axis.at(axis.count - 1) + 1;
      const auto before = around.start[k] + around.count[k];
      around.start[k] = n == 0 ? axis.start : std::min(around.start[k], axis.start);
      around.count[k] = (n == 0 ? end : std::max(before, end)) - around.start[k];
    }
  }
  return around;
}

const selection* mapped_selection::of(std::span<const std::uint64_t> shape, std::uint64_t along,
                                      std::optional<selection>& made) const {
  if (all_) return &made.emplace(selection::all(shape));
  if (values_) return values_->rank() == shape.size() ? &*values_ : nullptr;
  if (!endless_ || shape.size() != axes_.size()) return nullptr;
  auto axes = axes_;
  axes[*endless_].count = std::min(this->along(shape), along);
  return made.emplace(axes.size()).add(axes) ? &*made : nullptr;
}

std::uint64_t mapped_selection::along(std::span<const std::uint64_t> shape) const noexcept {
  return endless_ && *endless_ < shape.size() ? axes_[*endless_].below(shape[*endless_]) : endless;
}

std::pair<std::uint64_t, std::uint64_t> mapped_selection::blocks_near(const box& wanted) const noexcept {
  const auto start = axes_[*endless_].start, from = wanted.start[*endless_], end = from + wanted.count[*endless_];
  if (end <= start || from == end) return {0, 0};
  const auto first = from > start ? (from - start) / step_ : 0, last = (end - 1 - start) / step_;
  return {first, last - first + 1};
}

std::optional<selection> mapped_selection::block(std::uint64_t number) const {
  auto axes = axes_;
  auto& along = axes[*endless_];
  along = {along.start + number * step_, endless, endless, block_};
  selection made(axes.size());
  return made.add(axes) ? std::optional(std::move(made)) : std::nullopt;
}

std::size_t mapped_selection::bytes() const noexcept {
  return sizeof *this + axes_.capacity() * sizeof(index_blocks) + (values_ ? values_->bytes() : 0);
}

}  // namespace penstock::io
