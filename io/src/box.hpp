#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// HDF5's largest number of axes (H5S_MAX_RANK).
inline constexpr std::size_t max_rank = 32;
using extents = std::array<std::uint64_t, max_rank>;

/// A rectangular part of a dataset: `count[k]` indices from `start[k]` on, along each of `rank` axes.
struct box {
  std::size_t rank = 0;
  extents start{};
  extents count{};

  bool empty() const noexcept;
  std::uint64_t values() const noexcept;
};

/// The part that both have; both have the same rank.
box intersection(const box& a, const box& b) noexcept;

/// Bytes between neighbours along each axis where values of `value_bytes` lie packed in C order.
extents packed_strides(const extents& count, std::size_t rank, std::uint64_t value_bytes) noexcept;

/// How a box lies in two memories, as loops around contiguous runs: neighbouring axes that are contiguous in both are
/// one.
struct run_plan {
  std::uint64_t run_bytes = 0;
  std::size_t loops = 0;                                                          ///< innermost first
  std::array<std::uint64_t, max_rank + 1> count{}, source_step{}, target_step{};  // an axis each, and one more
};
run_plan plan_runs(const extents& count, std::size_t rank, const extents& source_strides, const extents& target_strides,
                   std::uint64_t value_bytes) noexcept;

/// Repeats a plan that plan_runs made `count` times, once, where its step in the target has its place among the
/// others': what lies closest there is written first.
void add_loop(run_plan& plan, std::uint64_t count, std::uint64_t source_step, std::uint64_t target_step) noexcept;

/// Copies the runs. `source` and `target` point at the box's first value.
void copy_runs(const run_plan& plan, const std::byte* source, std::byte* target) noexcept;

/// Fills a box of values, strided in `target`, with one value.
void fill_box(const extents& count, std::size_t rank, const extents& target_strides, std::span<const std::byte> value,
              std::byte* target) noexcept;

/// The same with zeros.
void zero_box(const extents& count, std::size_t rank, const extents& target_strides, std::uint64_t value_bytes,
              std::byte* target) noexcept;

}  // namespace penstock::io
