#pragma once

#include <sched.h>

#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <cstddef>

namespace penstock::pipeline {

/// Processors that are left to the consumer, to the thread that drives the device, and to what the system does, where
/// there are so many more than readers.
inline constexpr std::size_t spare_processors = 3;

/// Keeps an arena's threads off the spare processors: a reader that takes the consumer's for a time slice holds up
/// hundreds of batches. Does nothing where there are none. A thread that may not be placed runs where it is: only speed
/// depends on it.
class reader_places : public tbb::task_scheduler_observer {
 public:
  reader_places(tbb::task_arena& arena, std::size_t readers);
  ~reader_places() override { observe(false); }
  reader_places(const reader_places&) = delete;
  reader_places& operator=(const reader_places&) = delete;

  /// For a thread that is not the arena's.
  void place_this_thread() const;
  void on_scheduler_entry(bool is_worker) override;
  void on_scheduler_exit(bool is_worker) override;

 private:
  cpu_set_t all_, for_readers_;
  bool spares_some_ = false;
};

}  // namespace penstock::pipeline
