#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::pipeline {

using clock = std::chrono::steady_clock;

inline double seconds_since(clock::time_point start) noexcept {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// What one stage did, added up over threads. Thread-safe.
class meter {
 public:
  void work(clock::time_point start, std::uint64_t bytes) noexcept {
    busy_.fetch_add(nanoseconds_since(start), std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    blocks_.fetch_add(1, std::memory_order_relaxed);
  }
  void wait(clock::time_point start) noexcept {
    waited_.fetch_add(nanoseconds_since(start), std::memory_order_relaxed);
  }

  double busy_seconds() const noexcept { return static_cast<double>(busy_.load()) * 1e-9; }
  double wait_seconds() const noexcept { return static_cast<double>(waited_.load()) * 1e-9; }
  std::uint64_t bytes() const noexcept { return bytes_.load(); }
  std::uint64_t blocks() const noexcept { return blocks_.load(); }

 private:
  static std::uint64_t nanoseconds_since(clock::time_point start) noexcept {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(clock::now() - start).count());
  }
  std::atomic<std::uint64_t> busy_{0}, waited_{0}, bytes_{0}, blocks_{0};
};

}  // namespace penstock::pipeline
