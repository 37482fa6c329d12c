#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/stream.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
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

/// What the thread that hands blocks on (the conductor) and the consumer tell each other during one run: rows that are
/// ready, rows that are free again, the first error, the wish to stop. Positions count rows of the run. Thread-safe.
///
/// Events travel with positions, so that streams wait for each other and threads do not.
class handover {
 public:
  handover(gpu::device device, fault_seam faults);

  // --- either side
  /// Keeps the first failure; later ones are counted. Wakes everybody.
  void fail(std::exception_ptr failure);
  /// Ends the run: the conductor stops, the consumer's next call throws `stopped`.
  void stop();
  bool ended() const;
  std::exception_ptr failure() const;
  std::uint64_t later_failures() const;

  // --- conductor
  /// Records the work issued to `stream` so far: after it, rows before `end` are in the ring.
  void publish(gpu::stream_ref stream, std::uint64_t end);
  /// Says that one more block has come out of the flow, in order.
  void block_came_out();

  struct news {
    std::uint64_t blocks_out = 0;
    std::uint64_t released = 0;
    bool over = false;
  };
  news look() const;
  /// As look(), after something has changed since `before`, or `microseconds` have passed (0: as long as it takes).
  news wait(const news& before, unsigned microseconds) const;
  /// Lets `streams` wait for the consumer's work on rows before `position` (<= released). Each release is waited for
  /// once.
  void hold_until_free(std::span<const gpu::stream_ref> streams, std::uint64_t position);

  // --- consumer
  /// Blocks until rows before `end` are published; then lets `stream` wait for them. Throws the failure, or `stopped`.
  /// True where it had to wait.
  bool wait_for_rows(gpu::stream_ref stream, std::uint64_t end);
  bool has_rows(std::uint64_t end) const;
  /// Rows before `end` are free once the work issued so far to all of `streams` is done.
  void release(std::span<const gpu::stream_ref> streams, std::uint64_t end);

 private:
  struct mark {
    std::uint64_t end;
    gpu::event* event;
  };
  void throw_if_over(std::unique_lock<std::mutex>& lock) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable conductor_, consumer_;
  const bool host_;
  event_pool events_;
  std::deque<mark> published_marks_, released_marks_;
  std::uint64_t published_ = 0, waited_for_ = 0;
  std::uint64_t released_ = 0, held_ = 0;
  std::uint64_t blocks_out_ = 0;
  std::exception_ptr failure_;
  std::uint64_t later_failures_ = 0;
  bool stopped_ = false;
};

}  // namespace penstock::pipeline
