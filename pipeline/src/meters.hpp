#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::pipeline {

using clock = std::chrono::steady_clock;

inline double to_seconds(clock::duration time) noexcept { return std::chrono::duration<double>(time).count(); }
inline double seconds_since(clock::time_point start) noexcept { return to_seconds(clock::now() - start); }

/// Time that is added up, by any threads.
class time_sum {
 public:
  void add(clock::duration time) noexcept { ticks_.fetch_add(time.count(), std::memory_order_relaxed); }
  double seconds() const noexcept { return to_seconds(clock::duration(ticks_.load(std::memory_order_relaxed))); }

 private:
  std::atomic<clock::rep> ticks_{0};
};

/// The largest value that was seen. One thread writes.
class highest {
 public:
  void see(std::uint64_t value) noexcept {
    if (value > value_.load(std::memory_order_relaxed)) value_.store(value, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace penstock::pipeline
