#pragma once

#include "meters.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace penstock::pipeline {

/// Spans of what threads did, kept in memory that is taken once; those beyond are dropped and counted. Adding is
/// thread-safe and takes no lock.
class trace_log {
 public:
  /// Which track a span is shown on: that of the thread that adds it, or the one of blocks that wait to be let in.
  enum class track : std::uint8_t { reader, device, consumer, entrance };

  struct span {
    const char* name = nullptr;  ///< lives as long as the log
    clock::time_point begin, end;
    std::uint64_t block = 0;
    std::uint64_t rows = 0;
    std::uint64_t epoch = 0;
  };

  explicit trace_log(std::size_t bytes);

  void add(track where, const span& what) noexcept;
  std::uint64_t dropped() const noexcept;

  /// Chrome's trace events as JSON, in pieces: what Perfetto opens. Spans that are being added meanwhile are left out.
  void write(const std::function<void(std::string_view)>& take) const;

 private:
  struct record {
    span what;
    int thread = 0;
    track where = track::reader;
    std::atomic<bool> whole{false};
  };
  std::size_t capacity_;
  std::unique_ptr<record[]> records_;
  std::atomic<std::uint64_t> next_{0};
  clock::time_point zero_ = clock::now();
};

}  // namespace penstock::pipeline
