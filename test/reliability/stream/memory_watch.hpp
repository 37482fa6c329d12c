#pragma once

#include <penstock/gpu/device.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace penstock::test {

/// One kind of memory over time.
struct memory_course {
  std::string what;
  std::size_t allowed_growth = 0;
  std::function<std::size_t()> now;
  std::size_t first = 0, lowest = 0, highest = 0, last = 0;  ///< since the watch began to count
  std::size_t samples = 0;

  bool is_flat() const noexcept { return highest - first <= allowed_growth; }
};

/// Bytes of this process that are resident (VmRSS).
std::size_t resident_bytes();
/// Bytes in use on a device, of all processes; 0 for the host.
std::size_t used_bytes(gpu::device d);

/// Samples several courses twice a second on a thread of its own, from the moment that enough was streamed, and ends
/// the program where nothing is streamed for two minutes.
class memory_watch {
 public:
  /// `progress` in bytes; samples count from `from` on.
  memory_watch(std::vector<memory_course> courses, std::function<std::uint64_t()> progress, std::uint64_t from);
  /// Ends the watch with one more sample.
  std::vector<memory_course> end();

 private:
  void sample();
  void run(const std::stop_token& stop);

  std::vector<memory_course> courses_;
  std::function<std::uint64_t()> progress_;
  std::uint64_t from_;
  std::jthread thread_;
};

}  // namespace penstock::test
