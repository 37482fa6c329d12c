#include "stamps.hpp"

#include <algorithm>

namespace penstock::pipeline {

/// A wait that is being charged: from `at` on.
struct stamps::walk {
  ticks at, finish;
  std::vector<double>& seconds;

  /// Until the mark was passed, it was in this state. 0: not passed yet.
  void add(std::size_t state, ticks until) noexcept {
    if (until == 0 || until > finish) until = finish;
    if (until <= at) return;
    seconds[state] += to_seconds(clock::duration(until - at));
    at = until;
  }
};

stamps::stamps(std::size_t capacity, way how)
    : way_(how),
      owners_(capacity),
      block_marks_(capacity * block_points()),
      pieces_(2 * capacity),
      piece_marks_(pieces_.size() * piece_points()) {}

void stamps::open(std::uint64_t block, clock::time_point when) noexcept {
  auto& owner = owners_[block % owners_.size()];
  owner.store(0, std::memory_order_relaxed);
  for (std::size_t p = 0; p < block_points(); ++p) block_mark(block, p).store(0, std::memory_order_relaxed);
  set(block, way::in_line, when);
  owner.store(block + 1, std::memory_order_release);
}

void stamps::take_piece(std::uint64_t blocks_needed, std::uint64_t end, clock::time_point when) noexcept {
  const std::uint64_t number = taken_.load(std::memory_order_relaxed);
  piece_taken& piece = pieces_[number % pieces_.size()];
  for (std::size_t p = way_.taken(); p < way_.points(); ++p) piece_mark(number, p).store(0, std::memory_order_relaxed);
  piece.blocks_needed.store(blocks_needed, std::memory_order_relaxed);
  piece.end.store(end, std::memory_order_relaxed);
  taken_.store(number + 1, std::memory_order_release);
  set_piece(way_.taken(), when);
}

void stamps::pass_blocks(std::uint64_t end, walk& on) noexcept {
  if (end > owners_.size()) charged_blocks_ = std::max(charged_blocks_, end - owners_.size());
  for (; charged_blocks_ < end; ++charged_blocks_) {
    const std::uint64_t block = charged_blocks_;
    const std::uint64_t owner = owners_[block % owners_.size()].load(std::memory_order_acquire);
    if (owner > block + 1) continue;  // it went by while nobody waited
    const bool known = owner == block + 1;
    for (std::size_t p = 0; p < block_points(); ++p)
      on.add(p, known ? block_mark(block, p).load(std::memory_order_acquire) : 0);
    if (on.at == on.finish) return;  // still at the head of the line
  }
}

void stamps::charge(clock::time_point begin, clock::time_point end, std::uint64_t position, std::uint64_t last,
                    std::vector<double>& seconds, clock::time_point read_until) noexcept {
  walk on{begin.time_since_epoch().count(), end.time_since_epoch().count(), seconds};
  const std::uint64_t taken = taken_.load(std::memory_order_acquire);
  if (taken > pieces_.size()) charged_pieces_ = std::max(charged_pieces_, taken - pieces_.size());
  bool out = false;
  for (; charged_pieces_ < taken; ++charged_pieces_) {
    const piece_taken& piece = pieces_[charged_pieces_ % pieces_.size()];
    pass_blocks(piece.blocks_needed.load(std::memory_order_relaxed), on);
    for (std::size_t p = way_.taken(); p < way_.points(); ++p)
      on.add(p, piece_mark(charged_pieces_, p).load(std::memory_order_acquire));
    out = piece.end.load(std::memory_order_relaxed) > position;
    if (out) break;
  }
  if (!out) {
    pass_blocks(last + 1, on);
    on.add(way_.taken(), 0);
  }
  if (read_until > begin) on.add(way::ended(0), read_until.time_since_epoch().count());
  on.add(way_.points(), 0);
}

}  // namespace penstock::pipeline
