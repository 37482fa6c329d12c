#include "memory_watch.hpp"

#include <penstock/bytes.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <utility>

namespace penstock::test {

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t used_bytes(gpu::device d) {
  if (d.is_host()) return 0;
  const auto size = gpu::memory_of(d);
  return size.total_bytes - size.free_bytes;
}

memory_watch::memory_watch(std::vector<memory_course> courses, std::function<std::uint64_t()> progress,
                           std::uint64_t from)
    : courses_(std::move(courses)),
      progress_(std::move(progress)),
      from_(from),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

std::vector<memory_course> memory_watch::end() {
  thread_.request_stop();
  thread_.join();
  sample();
  return courses_;
}

void memory_watch::sample() {
  for (memory_course& course : courses_) {
    course.last = course.now();
    if (course.samples++ == 0) course.first = course.lowest = course.highest = course.last;
    course.lowest = std::min(course.lowest, course.last);
    course.highest = std::max(course.highest, course.last);
  }
}

void memory_watch::run(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds interval{500};
  constexpr int patience = 240, intervals_of_a_line = 20;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  std::uint64_t before = 0;
  for (int n = 1, idle = 0; !never.wait_for(lock, stop, interval, [] { return false; }) && !stop.stop_requested();
       ++n) {
    const std::uint64_t streamed = progress_();
    if (streamed >= from_) sample();
    idle = streamed == before ? idle + 1 : 0;
    before = streamed;
    if (idle > patience) {
      fmt::print(stderr, "hangs: nothing came for two minutes, after {}\n", format_bytes(streamed));
      std::abort();
    }
    if (n % intervals_of_a_line != 0) continue;
    fmt::print("{:.0f} s: {} streamed", n * std::chrono::duration<double>(interval).count(), format_bytes(streamed));
    for (const memory_course& course : courses_) fmt::print(", {} {}", course.what, format_bytes(course.now()));
    fmt::print("\n");
    std::fflush(stdout);
  }
}

}  // namespace penstock::test
