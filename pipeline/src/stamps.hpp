#pragma once

#include "meters.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// The way of a block through stages of the flow (reading, then host transforms), and of pieces of it through the
/// conductor's: points in order. State n is the time between points n - 1 and n: state 0 before a block is in the line,
/// as where a run begins. After the last point, rows are handed over.
struct way {
  std::size_t flow_stages = 1;
  std::size_t device_transforms = 0;

  static constexpr std::size_t in_line = 0, has_slot = 1, let_in = 2;
  static constexpr std::size_t began(std::size_t stage) noexcept { return 3 + 2 * stage; }
  static constexpr std::size_t ended(std::size_t stage) noexcept { return 4 + 2 * stage; }
  constexpr std::size_t came_out() const noexcept { return 3 + 2 * flow_stages; }
  /// The last of a block: its image's copy is issued, or it needs none.
  constexpr std::size_t arrived() const noexcept { return came_out() + 1; }
  /// The first of a piece.
  constexpr std::size_t taken() const noexcept { return came_out() + 2; }
  constexpr std::size_t gathered() const noexcept { return came_out() + 3; }
  constexpr std::size_t transformed(std::size_t transform) const noexcept { return gathered() + 1 + transform; }
  constexpr std::size_t points() const noexcept { return gathered() + 1 + device_transforms; }
  constexpr std::size_t states() const noexcept { return points() + 1; }
};

/// When blocks and pieces on their way passed which point; what a consumer's waits are charged by. Keeps the last
/// `capacity` of both: as many as can be on their way at once. Each mark is written by one thread, which is done before
/// the next point's begins; one thread charges.
class stamps {
 public:
  stamps(std::size_t capacity, way how);

  const way& of() const noexcept { return way_; }

  /// The block is first in the line before the flow; what was known of an earlier one in its place is forgotten.
  void open(std::uint64_t block, clock::time_point when) noexcept;
  void set(std::uint64_t block, std::size_t point, clock::time_point when) noexcept {
    block_mark(block, point).store(when.time_since_epoch().count(), std::memory_order_release);
  }

  /// Rows before position `end`, of the blocks before `blocks_needed`, are taken. One thread, piece by piece.
  void take_piece(std::uint64_t blocks_needed, std::uint64_t end, clock::time_point when) noexcept;
  /// The piece that was taken last has come to `point`.
  void set_piece(std::size_t point, clock::time_point when) noexcept {
    piece_mark(taken_.load(std::memory_order_relaxed) - 1, point)
        .store(when.time_since_epoch().count(), std::memory_order_release);
  }

  /// Adds the wait from `begin` to `end` for the row at `position`, which lies in block `last` or draws from the blocks
  /// up to it, to `seconds` (of states() entries): each moment goes to the state of what was at the head of the line,
  /// which is the first block that had not arrived, or the first piece that was not out. Where that was out, and who
  /// waits still read another block itself, until `read_until`, it goes to reading. The parts add up to end - begin.
  /// Waits come in order.
  void charge(clock::time_point begin, clock::time_point end, std::uint64_t position, std::uint64_t last,
              std::vector<double>& seconds, clock::time_point read_until = {}) noexcept;

 private:
  using ticks = clock::rep;
  struct piece_taken {
    std::atomic<std::uint64_t> blocks_needed{0}, end{0};
  };
  struct walk;
  void pass_blocks(std::uint64_t end, walk& on) noexcept;
  std::size_t block_points() const noexcept { return way_.arrived() + 1; }
  std::size_t piece_points() const noexcept { return way_.points() - block_points(); }
  std::atomic<ticks>& block_mark(std::uint64_t block, std::size_t point) noexcept {
    return block_marks_[block % owners_.size() * block_points() + point];
  }
  std::atomic<ticks>& piece_mark(std::uint64_t piece, std::size_t point) noexcept {
    return piece_marks_[piece % pieces_.size() * piece_points() + point - block_points()];
  }

  way way_;
  std::vector<std::atomic<std::uint64_t>> owners_;  ///< block + 1; 0: none
  std::vector<std::atomic<ticks>> block_marks_;
  std::vector<piece_taken> pieces_;
  std::vector<std::atomic<ticks>> piece_marks_;
  std::atomic<std::uint64_t> taken_{0};                    ///< pieces
  std::uint64_t charged_blocks_ = 0, charged_pieces_ = 0;  ///< at the head of the line when a wait was last charged
};

}  // namespace penstock::pipeline
