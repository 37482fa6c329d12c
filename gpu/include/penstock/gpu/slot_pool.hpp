#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace penstock::gpu {

/// Credits: the numbers of a fixed set of slots, each held by one owner at a time. Slots come back into use in the
/// order in which they were released; those who wait are served in the order in which they came, and try_acquire() does
/// not overtake them. Thread-safe. Holds no memory: slot n is the owner's n-th part of a slab.
class slot_pool {
 public:
  /// Slots 0 to `slots` - 1, all free. Throws std::invalid_argument for 0.
  explicit slot_pool(std::size_t slots);

  /// A free slot, or nothing where there is none or somebody waits. Does not block.
  std::optional<std::size_t> try_acquire();
  /// A slot; blocks until one is free. Nothing where `stop` was requested before one was.
  std::optional<std::size_t> acquire(std::stop_token stop = {});
  /// Gives a slot back. Throws std::invalid_argument for one that is not in use.
  void release(std::size_t slot);

  std::size_t size() const noexcept { return used_.size(); }
  std::size_t in_use() const;
  /// The most slots that were ever in use at once.
  std::size_t peak() const;
  /// Callers of acquire() that wait now.
  std::size_t waiting() const;
  /// Time that callers of acquire() have spent waiting, summed over them; waits that still last are not in it.
  double waited_seconds() const;

 private:
  bool is_first(std::uint64_t ticket) const { return !free_.empty() && waiting_.front() == ticket; }
  std::size_t take_oldest();

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::size_t> free_;       // the longest free at the front
  std::deque<std::uint64_t> waiting_;  // tickets of those who wait, in the order of their coming
  std::vector<bool> used_;
  std::uint64_t next_ticket_ = 0;
  std::size_t peak_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace penstock::gpu
