#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/stream.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace penstock::pipeline {

/// Events that are used again and again; grows only while more are in use than ever before. Not thread-safe.
class event_pool {
 public:
  event_pool(gpu::device device, fault_seam faults) : device_(device), faults_(std::move(faults)) {}
  gpu::event* take();
  void give_back(gpu::event* event) { free_.push_back(event); }

 private:
  gpu::device device_;
  fault_seam faults_;
  std::vector<std::unique_ptr<gpu::event>> all_;
  std::vector<gpu::event*> free_;
};

/// How far a stream has come in a sequence (of blocks, of rows): marks in its work that other streams wait for, or that
/// a thread asks about; either, not both. Each mark is waited for once. Not thread-safe.
class stream_marks {
 public:
  stream_marks(gpu::device device, fault_seam faults) : events_(device, std::move(faults)) {}

  /// After the work issued to `stream` so far, everything before `end` is done. Ends never fall.
  void record(gpu::stream_ref stream, std::uint64_t end);
  /// Lets `stream` wait for everything before `position`, as far as it is recorded.
  void hold(gpu::stream_ref stream, std::uint64_t position);
  /// Everything before it is done, as far as one may know without waiting.
  std::uint64_t done();
  /// As new. What was recorded must be over.
  void reset();

 private:
  struct mark {
    std::uint64_t end;
    gpu::event* event;
  };
  event_pool events_;
  std::deque<mark> marks_;
  std::uint64_t passed_ = 0;  ///< the end of the last mark that was waited for, or was found done
};

}  // namespace penstock::pipeline
