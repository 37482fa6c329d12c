#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace penstock::pipeline {

/// Which batches of a run are lent, and how far they came back in order. One thread lends; any may bring back. Takes no
/// lock: what each batch costs is an atomic store and an exchange.
class lent_batches {
 public:
  /// At most `most` are lent at a time, from the oldest that is not back on.
  explicit lent_batches(std::size_t most);

  /// Batches that were lent so far. The lender's thread.
  std::uint64_t lent() const noexcept { return lent_; }
  /// Batches before it are all back.
  std::uint64_t in_order() const noexcept { return in_order_.load(std::memory_order_acquire); }
  /// Another may be lent.
  bool has_room() const noexcept { return lent_ - in_order() < most_; }
  /// Number of the batch that is lent now. The lender's thread; there is room.
  std::uint64_t lend() noexcept { return lent_++; }
  /// Batches that are out. The lender's thread.
  std::size_t out() const noexcept;

  /// A batch is back, once. `passed` is called with the number of each batch that thereby is back in order, by one
  /// thread for each; another's may come before. What was done before any of these came back has happened before.
  template <class F>
  void bring_back(std::uint64_t number, F&& passed) {
    // Sequentially consistent, all three: of two threads, each must see the other's batch, or be seen.
    back_[number & mask_].store(number + 1);
    for (std::uint64_t next = in_order_.load(); is_back(next);)
      if (in_order_.compare_exchange_weak(next, next + 1)) passed(next++);
  }

 private:
  bool is_back(std::uint64_t number) const noexcept { return back_[number & mask_].load() == number + 1; }

  const std::uint64_t most_;
  const std::uint64_t mask_;
  std::vector<std::atomic<std::uint64_t>> back_;  ///< in turn: 1 + the batch that came back last
  std::atomic<std::uint64_t> in_order_{0};
  std::uint64_t lent_ = 0;
};

}  // namespace penstock::pipeline
