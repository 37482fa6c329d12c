#include "thread_places.hpp"

namespace penstock::pipeline {

reader_places::reader_places(tbb::task_arena& arena, std::size_t readers) : tbb::task_scheduler_observer(arena) {
  CPU_ZERO(&all_);
  if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;
  if (static_cast<std::size_t>(CPU_COUNT(&all_)) < readers + spare_processors) return;
  for_readers_ = all_;
  std::size_t spare = spare_processors;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && spare > 0; --cpu)
    if (CPU_ISSET(cpu, &for_readers_)) {
      CPU_CLR(cpu, &for_readers_);
      --spare;
    }
  spares_some_ = true;
  observe(true);
}

void reader_places::place_this_thread() const {
  if (spares_some_) sched_setaffinity(0, sizeof for_readers_, &for_readers_);
}

void reader_places::on_scheduler_entry(bool) { sched_setaffinity(0, sizeof for_readers_, &for_readers_); }
void reader_places::on_scheduler_exit(bool) { sched_setaffinity(0, sizeof all_, &all_); }

}  // namespace penstock::pipeline
