#pragma once

#include "meters.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::pipeline {

/// When each block on its way passed which point; what a consumer's wait is charged by. Keeps the last `capacity`
/// blocks: as many as can be on their way at once. Thread-safe.
class stamps {
 public:
  enum point : std::size_t { issued, was_read, came_out, points };

  explicit stamps(std::size_t capacity) : marks_(capacity) {}

  void set(std::uint64_t block, point which, clock::time_point when = clock::now()) noexcept {
    auto& mark = marks_[block % marks_.size()];
    if (which == issued)
      for (std::size_t later = was_read; later < points; ++later) mark[later].store(0, std::memory_order_relaxed);
    mark[which].store(when.time_since_epoch().count(), std::memory_order_release);
  }

  /// Seconds of a wait from `begin` to `end` for the blocks up to `last`, by what the first block that had not come out
  /// was waiting for: 0: to be issued, 1: to be read, 2: transforms and its turn, 3: copy and delivery.
  std::array<double, 4> charge(clock::time_point begin, clock::time_point end, std::uint64_t last) const noexcept {
    std::array<double, 4> seconds{};
    const auto finish = end.time_since_epoch().count();
    auto at = begin.time_since_epoch().count();
    const std::uint64_t first = last + 1 > marks_.size() ? last + 1 - marks_.size() : 0;
    for (std::uint64_t block = first; block <= last; ++block)
      for (std::size_t p = 0; p < points; ++p) {
        auto until = marks_[block % marks_.size()][p].load(std::memory_order_acquire);
        if (until == 0 || until > finish) until = finish;
        if (until > at) seconds[p] += to_seconds(until - at), at = until;
      }
    seconds[3] += to_seconds(finish - at);
    return seconds;
  }

 private:
  using ticks = clock::rep;
  static double to_seconds(ticks t) noexcept { return std::chrono::duration<double>(clock::duration(t)).count(); }

  std::vector<std::array<std::atomic<ticks>, points>> marks_;
};

}  // namespace penstock::pipeline
