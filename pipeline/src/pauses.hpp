#pragma once

#include "meters.hpp"

#include <algorithm>
#include <mutex>

namespace penstock::pipeline {

/// Times that do not count: nobody was there whom the stages could have held up. One thread begins and ends them, any
/// may ask.
class pauses {
 public:
  /// A time, and how much was paused before it.
  struct moment {
    clock::time_point at{};
    clock::duration paused{};
  };

  bool are_on() const noexcept { return on_; }  ///< for the thread that begins and ends them
  void begin(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (on_) return;
    before_ += end_ - begin_;
    begin_ = now;
    on_ = true;
  }
  void end(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (on_) end_ = now;
    on_ = false;
  }

  /// For times since the end of the last pause but one: of earlier pauses only their sum is known.
  moment of(clock::time_point when) const {
    const std::lock_guard lock(mutex_);
    const clock::time_point until = on_ ? when : std::min(when, end_);
    return {when, before_ + std::max(until - begin_, clock::duration{0})};
  }
  /// What counts of the time since then.
  clock::duration counted(const moment& since, clock::time_point now) const {
    return now - since.at - (of(now).paused - since.paused);
  }
  clock::duration counted(clock::time_point since, clock::time_point now) const { return counted(of(since), now); }

 private:
  mutable std::mutex mutex_;
  clock::duration before_{0};          ///< of the pauses before the last one
  clock::time_point begin_{}, end_{};  ///< of the last one
  bool on_ = false;                    ///< it has no end yet
};

}  // namespace penstock::pipeline
