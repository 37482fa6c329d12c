#pragma once

#include <penstock/fault.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace penstock::test {

/// A seam that makes every stage stall now and then, and counts the memory that is allocated. Which uses stall, and for
/// how long, is a function of the seed and the number of the use. Thread-safe.
class stalls final : public fault_injector {
 public:
  struct options {
    std::uint64_t every = 500;                 ///< one use in so many stalls, of each kind
    std::chrono::microseconds longest{40000};  ///< a stall takes up to this
    std::uint64_t seed = 0;
    /// Of this file, a bit of one large read is flipped: what watches the data must tell. It is for bytes that are
    /// not compressed: a decoder tells by itself.
    std::string spoilt;
  };
  struct count {
    std::uint64_t stalls = 0;
    std::chrono::microseconds took{0};
  };

  explicit stalls(options o) : options_(o) {}

  fault before(fault_site site, std::string_view what, std::uint64_t offset, std::size_t bytes) override;
  /// What was read is decoded next, on the same thread: the stall is decoding's.
  void after_read(std::string_view path, std::uint64_t offset, std::span<std::byte> bytes) override;
  /// How long the next use of a stage of the caller's own shall stall, one in `every`.
  std::chrono::microseconds next(const std::string& stage, std::uint64_t every);
  /// The same, and sleeps for so long.
  void pass(const std::string& stage, std::uint64_t every);

  std::uint64_t usual() const noexcept { return options_.every; }
  std::map<std::string, count> counts() const;
  std::size_t pinned_bytes() const noexcept { return pinned_; }  ///< asked for so far; none is given back meanwhile
  std::size_t device_bytes() const noexcept { return device_; }

 private:
  options options_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> uses_;
  std::map<std::string, count> counts_;
  std::atomic<std::size_t> pinned_{0}, device_{0};
  std::atomic<std::uint64_t> large_reads_{0};
};

}  // namespace penstock::test
