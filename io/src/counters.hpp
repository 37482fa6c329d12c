#pragma once

#include <penstock/io/row_reader.hpp>

#include <atomic>
#include <chrono>

namespace penstock::io {

/// What reads add up, from many threads.
struct counters {
  std::atomic<std::uint64_t> stored_bytes{0}, decoded_bytes{0}, chunks_decoded{0}, locked_bytes{0};
  std::atomic<std::int64_t> read_nanoseconds{0}, decode_nanoseconds{0}, lock_nanoseconds{0};

  void reset() noexcept {
    for (auto* n : {&stored_bytes, &decoded_bytes, &chunks_decoded, &locked_bytes})
      n->store(0, std::memory_order_relaxed);
    for (auto* n : {&read_nanoseconds, &decode_nanoseconds, &lock_nanoseconds}) n->store(0, std::memory_order_relaxed);
  }

  read_statistics snapshot() const noexcept {
    const auto seconds = [](const auto& n) { return static_cast<double>(n.load(std::memory_order_relaxed)) * 1e-9; };
    return {.stored_bytes = stored_bytes.load(std::memory_order_relaxed),
            .decoded_bytes = decoded_bytes.load(std::memory_order_relaxed),
            .chunks_decoded = chunks_decoded.load(std::memory_order_relaxed),
            .locked_bytes = locked_bytes.load(std::memory_order_relaxed),
            .read_seconds = seconds(read_nanoseconds),
            .decode_seconds = seconds(decode_nanoseconds),
            .lock_seconds = seconds(lock_nanoseconds)};
  }
};

/// Adds its lifetime to a counter.
class stopwatch {
 public:
  explicit stopwatch(std::atomic<std::int64_t>& nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() {
    const auto passed = std::chrono::steady_clock::now() - start_;
    nanoseconds_.fetch_add(std::chrono::nanoseconds(passed).count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t>& nanoseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace penstock::io
