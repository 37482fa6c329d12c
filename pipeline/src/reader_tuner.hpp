#pragma once

#include "meters.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace penstock::pipeline {

/// How many blocks are read at once, by what is measured while a run goes on. As long as blocks wait for readers, so
/// that reading holds the run up, other numbers are tried for some tens of milliseconds: first more, then fewer. What
/// is clearly faster is kept, and the next step in that direction tried; after a number that is not, it waits twice as
/// long as before until it tries again. Where reading does not hold the run up, nothing is tried.
///
/// Costs a lock, that nobody holds for long, for each block. Thread-safe. Needs no memory for other numbers: what
/// `most` readers take is in the plan.
class reader_tuner {
 public:
  /// `start` readers at first, and never more than `most`.
  reader_tuner(std::size_t start, std::size_t most);

  /// What was measured before does not go on.
  void begin_run();
  /// A block was read at `now`; `waiting`: another one waited for a reader. Returns how many may be at work from now
  /// on.
  std::size_t block_read(clock::time_point now, bool waiting);

  struct tried {
    std::size_t readers = 0;
    double blocks_per_second = 0;  ///< when it was last measured while reading held the run up
  };
  struct findings {
    std::size_t readers = 0, start = 0, most = 0;
    std::vector<tried> measured;  ///< by readers, those that were
  };
  findings read() const;

 private:
  void judge();
  void judge_trial(double rate, bool holds_up);
  void settle_on(std::size_t readers);
  bool try_next();
  std::size_t next_step() const;
  void begin_period(std::uint64_t blocks_to_skip);

  mutable std::mutex mutex_;
  const std::size_t start_, most_;
  std::size_t readers_;        ///< now
  std::vector<double> rates_;  ///< blocks per second by readers; 0: not measured
  bool upwards_ = true, on_trial_ = false;
  std::size_t settled_;  ///< the number to go back to
  double settled_rate_ = 0;
  std::uint64_t failures_ = 0, pause_ = 0;  ///< trials that were not better; periods until the next

  // The period that is being measured: what came after a block at whose end another waited, and after others.
  std::uint64_t skip_ = 0;  ///< blocks that do not count
  std::uint64_t blocks_ = 0, after_waiting_blocks_ = 0;
  clock::duration after_waiting_time_{0}, after_none_time_{0};
  clock::time_point began_, last_;
  bool after_waiting_ = false;
};

}  // namespace penstock::pipeline
