#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// How long the consumer's stream waits on the device for rows, from timed events before and after a sample of its
/// waits: the first, second, fourth, ..., and every 64th; each stands for those since the sample before. Nobody waits
/// for the events: they are read when a later sample is taken. Not thread-safe; one thread.
class device_stall {
 public:
  explicit device_stall(gpu::device device, fault_seam faults = {}) : device_(device), faults_(std::move(faults)) {}

  /// Counts a wait whose rows were there: it cannot stall.
  void pass();
  /// Lets `stream` wait for `event`, timed where this is one of the sample.
  void hold(gpu::stream_ref stream, const gpu::event& event);
  /// Reads what has happened by now.
  void collect();

  struct figures {
    std::uint64_t waits = 0;
    std::uint64_t samples = 0;  ///< read
    double seconds = 0;         ///< estimate for all waits that the samples stand for
  };
  const figures& sums() const noexcept { return sums_; }

 private:
  struct sample {
    gpu::event before, after;
    std::uint64_t stands_for = 0;  ///< 0: free
  };
  static constexpr std::size_t most_open = 4;
  bool is_sampled();
  sample* free_sample();

  gpu::device device_;
  fault_seam faults_;
  std::vector<sample> open_;  ///< made when first needed
  std::uint64_t since_last_ = 0;
  figures sums_;
};

}  // namespace penstock::pipeline
