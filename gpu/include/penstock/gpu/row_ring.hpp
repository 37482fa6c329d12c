#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace penstock::gpu {

/// Consecutive rows of a ring's memory.
struct ring_piece {
  std::uint64_t row = 0;   ///< first row in the ring, below its capacity
  std::uint64_t rows = 0;  ///< 0: no piece
  std::size_t offset_bytes = 0;
  std::size_t bytes = 0;
};

/// The one or two pieces of a range of rows: the second, if any, starts at the ring's first byte.
struct ring_pieces {
  ring_piece first;
  ring_piece second;
  bool is_contiguous() const noexcept { return second.rows == 0; }
};

/// The arithmetic of a ring of rows: which rows of an endless stream of rows lie in it, and where. Row r lies at r
/// modulo the capacity; rows [consumed(), produced()) are held. Holds no memory and no lock: its owner does.
class row_ring {
 public:
  /// Throws std::invalid_argument for a capacity of 0 rows.
  row_ring(std::uint64_t capacity_rows, std::size_t row_bytes) : capacity_rows_(capacity_rows), row_bytes_(row_bytes) {
    if (capacity_rows == 0) throw std::invalid_argument("a row ring needs a capacity of at least one row");
  }

  std::uint64_t capacity_rows() const noexcept { return capacity_rows_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(capacity_rows_) * row_bytes_; }

  /// Rows ever put in, and ever taken out.
  std::uint64_t produced() const noexcept { return produced_; }
  std::uint64_t consumed() const noexcept { return consumed_; }
  std::uint64_t held_rows() const noexcept { return produced_ - consumed_; }
  std::uint64_t free_rows() const noexcept { return capacity_rows_ - held_rows(); }

  /// `rows` more were put in. Throws std::invalid_argument where fewer are free.
  void produce(std::uint64_t rows) {
    if (rows > free_rows()) refuse("put in", rows, free_rows(), "free");
    produced_ += rows;
  }
  /// The `rows` oldest were taken out. Throws std::invalid_argument where fewer are held.
  void consume(std::uint64_t rows) {
    if (rows > held_rows()) refuse("take out", rows, held_rows(), "held");
    consumed_ += rows;
  }
  /// Empty, and at row 0 again.
  void reset() noexcept { produced_ = consumed_ = 0; }

  /// Where rows [first, first + count) of the stream of rows lie. Throws std::invalid_argument for more rows than the
  /// ring has.
  ring_pieces pieces(std::uint64_t first, std::uint64_t count) const {
    if (count > capacity_rows_) refuse("place", count, capacity_rows_, "in all");
    const std::uint64_t row = first % capacity_rows_;
    const std::uint64_t before_wrap = count < capacity_rows_ - row ? count : capacity_rows_ - row;
    return {piece(row, before_wrap), piece(0, count - before_wrap)};
  }

 private:
  ring_piece piece(std::uint64_t row, std::uint64_t rows) const noexcept {
    return {row, rows, static_cast<std::size_t>(row) * row_bytes_, static_cast<std::size_t>(rows) * row_bytes_};
  }
  [[noreturn]] static void refuse(const char* what, std::uint64_t rows, std::uint64_t there, const char* state) {
    throw std::invalid_argument(std::string("cannot ") + what + " " + std::to_string(rows) + " rows: the ring has " +
                                std::to_string(there) + " rows " + state);
  }

  std::uint64_t capacity_rows_;
  std::size_t row_bytes_;
  std::uint64_t produced_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace penstock::gpu
