#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock::gpu {

/// Rows of one field in a ring of memory: row r of an endless stream of rows lies at r modulo rows(). Addresses only:
/// who writes and who reads which rows is agreed elsewhere. A view; does not own its memory.
class row_ring {
 public:
  row_ring() noexcept = default;
  /// `rows` > 0.
  row_ring(std::byte* base, std::uint64_t rows, std::size_t row_bytes) noexcept
      : base_(base), rows_(rows), row_bytes_(row_bytes) {}

  std::byte* base() const noexcept { return base_; }
  std::uint64_t rows() const noexcept { return rows_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(rows_) * row_bytes_; }

  /// Where row `row` lies.
  std::byte* at(std::uint64_t row) const noexcept { return base_ + static_cast<std::size_t>(row % rows_) * row_bytes_; }
  /// How many of the `count` rows from `row` on lie one after another, before the ring begins again.
  std::uint64_t contiguous(std::uint64_t row, std::uint64_t count) const noexcept {
    return std::min(count, rows_ - row % rows_);
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t rows_ = 1;
  std::size_t row_bytes_ = 0;
};

}  // namespace penstock::gpu
