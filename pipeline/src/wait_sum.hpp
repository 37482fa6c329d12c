#pragma once

#include "pauses.hpp"

#include <algorithm>
#include <mutex>

namespace penstock::pipeline {

/// Time that was waited for one thing, by one thread at a time; a wait that has no end yet counts up to now, and pauses
/// do not count. Any thread may ask. Costs a lock, that nobody holds for long, for the two ends of a wait.
class wait_sum {
 public:
  /// `paused` is kept.
  explicit wait_sum(const pauses& paused) : paused_(paused) {}

  void begin(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    since_ = paused_.of(now);
    open_ = true;
  }
  /// Nothing where no wait began.
  void end(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    sum_ += open_time(now);
    open_ = false;
  }

  double seconds(clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    return to_seconds(sum_ + open_time(now));
  }

 private:
  /// Of a wait that began after the time that is asked for, nothing.
  clock::duration open_time(clock::time_point now) const {
    return open_ ? std::max(paused_.counted(since_, now), clock::duration{0}) : clock::duration{0};
  }

  const pauses& paused_;
  mutable std::mutex mutex_;
  clock::duration sum_{0};
  bool open_ = false;
  pauses::moment since_;
};

}  // namespace penstock::pipeline
