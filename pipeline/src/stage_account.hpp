#pragma once

#include "meters.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace penstock::pipeline {

/// What one stage did: how many blocks waited for it and were worked on, added up over the time of the runs, so that
/// means, busy and idle time follow. Costs a lock, that nobody holds for long, for each step of a block. Thread-safe;
/// times may come slightly out of order.
class stage_account {
 public:
  struct figures {
    std::uint64_t blocks = 0;        ///< worked on to the end
    std::uint64_t bytes = 0;         ///< of those
    double busy_seconds = 0;         ///< summed over workers
    double starved_seconds = 0;      ///< workers idle while no block waited, summed over workers
    double held_up_seconds = 0;      ///< workers idle while blocks waited
    double waiting_seconds = 0;      ///< of blocks in front of the stage, summed over blocks
    double seconds = 0;              ///< of the runs
    std::uint64_t most_waiting = 0;  ///< blocks in front of the stage at once
    std::size_t workers = 0;         ///< as many as now
  };

  /// `workers`: blocks that can be worked on at once.
  void set_workers(std::size_t workers) noexcept { workers_ = workers; }
  /// From now on.
  void set_workers(clock::time_point now, std::size_t workers) {
    const std::lock_guard lock(mutex_);
    advance(now);
    workers_ = workers;
  }

  void begin_run(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    running_ = true;
    paused_ = false;
    last_ = now;
    waiting_ = at_work_ = 0;
  }
  void end_run(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    running_ = false;
  }

  /// From now until resume(), blocks are counted as ever, and no time.
  void pause(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    paused_ = true;
  }
  void resume(clock::time_point now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    paused_ = false;
  }

  /// Blocks come to the stage and wait.
  void arrive(clock::time_point now, std::uint64_t blocks = 1) { change(now, static_cast<std::int64_t>(blocks), 0); }
  /// They are done with while they waited: others work on them.
  void leave(clock::time_point now, std::uint64_t blocks = 1) {
    const std::lock_guard lock(mutex_);
    advance(now);
    waiting_ -= static_cast<std::int64_t>(blocks);
    sums_.blocks += blocks;
  }
  /// A worker begins with a block that waited until now.
  void start(clock::time_point now) { change(now, -1, 1); }
  /// A worker ends. `blocks`: those that are finished with it.
  void end(clock::time_point now, std::uint64_t bytes, std::uint64_t blocks = 1) {
    const std::lock_guard lock(mutex_);
    advance(now);
    --at_work_;
    sums_.bytes += bytes;
    sums_.blocks += blocks;
  }

  figures read(clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    stage_account::figures sums = sums_;
    if (running_ && !paused_) add(sums, now - last_);
    sums.workers = workers_;
    return sums;
  }

 private:
  void change(clock::time_point now, std::int64_t waiting, std::int64_t at_work) {
    const std::lock_guard lock(mutex_);
    advance(now);
    waiting_ += waiting;
    at_work_ += at_work;
    sums_.most_waiting = std::max(sums_.most_waiting, static_cast<std::uint64_t>(std::max<std::int64_t>(waiting_, 0)));
  }

  void advance(clock::time_point now) {
    if (!running_ || now <= last_) return;
    if (!paused_) add(sums_, now - last_);
    last_ = now;
  }

  void add(figures& to, clock::duration time) const {
    const double seconds = to_seconds(time);
    if (seconds <= 0) return;
    to.seconds += seconds;
    to.busy_seconds += seconds * static_cast<double>(at_work_);
    to.waiting_seconds += seconds * static_cast<double>(waiting_);
    const std::int64_t idle = static_cast<std::int64_t>(workers_) - at_work_;
    if (idle > 0) (waiting_ > 0 ? to.held_up_seconds : to.starved_seconds) += seconds * static_cast<double>(idle);
  }

  mutable std::mutex mutex_;
  std::size_t workers_ = 1;
  figures sums_;
  bool running_ = false, paused_ = false;
  clock::time_point last_;
  std::int64_t waiting_ = 0, at_work_ = 0;
};

}  // namespace penstock::pipeline
