#pragma once

#include "cache_line.hpp"
#include "device_stall.hpp"
#include "stream_marks.hpp"

#include <penstock/fault.hpp>
#include <penstock/gpu/stream.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace penstock::pipeline {

/// Where the consumer's own thread takes part in filling the rings.
class consumer_help {
 public:
  enum class outcome : std::uint8_t {
    read,        ///< a block
    short_wait,  ///< there is nothing to read, as others are about to be done
    long_wait    ///< that is left to other threads, and may take its time
  };
  /// Reads a block, where that is sooner than to wait for rows before `end`.
  virtual outcome read_block(std::uint64_t end) = 0;
  /// Rows were released.
  virtual void rows_are_free() = 0;

 protected:
  ~consumer_help() = default;
};

/// What the thread that hands blocks on (the conductor) and the consumer tell each other during one run: rows that are
/// ready, rows that are free again, the first error, the wish to stop. Positions count rows of the run. Thread-safe.
///
/// Events travel with positions, so that streams wait for each other and threads do not.
class handover {
 public:
  /// `watchful`: the consumer has a processor to itself, and watches for rows for a while before it sleeps. `help`,
  /// where there is one, is asked while the consumer waits, and told what it releases, without the lock.
  handover(gpu::device device, bool watchful, consumer_help* help, fault_seam faults);

  // --- either side
  /// Keeps the first failure; later ones are counted. Wakes everybody.
  void fail(std::exception_ptr failure);
  /// Ends the run: the conductor stops, the consumer's next call throws `stopped`.
  void stop();
  bool ended() const;
  std::exception_ptr failure() const;
  std::uint64_t later_failures() const;

  // --- conductor; one thread
  /// Records the work issued to `stream` so far: after it, rows before `end` are in the ring.
  void publish(gpu::stream_ref stream, std::uint64_t end);
  /// Says that one more block has come out of the flow, in order.
  void block_came_out();

  /// A position that no release reaches.
  static constexpr std::uint64_t nothing = ~std::uint64_t{0};

  struct news {
    std::uint64_t blocks_out = 0;
    std::uint64_t released = 0;
    bool over = false;
  };
  news look() const { return {blocks_out_, released_, over_}; }
  /// As look(), after so many blocks have come out, rows have been released up to `room` or the run is over, or
  /// `most` has passed (0: as long as it takes).
  news wait(std::uint64_t blocks, std::uint64_t room, std::chrono::microseconds most);
  /// Whether the device says that the consumer's work on rows before `position` is done: nothing need wait for it then.
  bool is_free(std::uint64_t position);
  /// Lets `streams` wait for the consumer's work on rows before `position` (<= released), where that is not known to be
  /// done. Each release is waited for once.
  void hold_until_free(std::span<const gpu::stream_ref> streams, std::uint64_t position);

  // --- consumer; one thread
  /// Rows before `end` are covered by an earlier wait, and the run goes on: no wait is needed. Takes no lock, so that
  /// the batches of a block cost one wait together, and blocks that are already there one question together.
  bool has_rows(std::uint64_t end) const { return end <= ready_ && !over_.load(std::memory_order_relaxed); }
  /// Blocks until rows before `end` are published; then lets `stream` wait for them. Throws the failure, or `stopped`.
  /// True where it had to wait.
  /// `meanwhile`, where there is one, is called now and then while it waits, without the lock. `stall` times what the
  /// stream waits.
  bool wait_for_rows(gpu::stream_ref stream, std::uint64_t end, device_stall& stall,
                     const std::function<void()>& meanwhile = {});
  /// When it last ended to read a block itself.
  std::chrono::steady_clock::time_point read_until() const noexcept { return read_until_; }
  /// A mark after the work issued to `stream` so far, for release(). Any thread.
  gpu::event* record_mark(gpu::stream_ref stream);
  /// Rows before `end` are free once `marks` have happened and the work issued so far to `stream` is done. The marks
  /// are used up. One thread at a time.
  void release(std::span<gpu::event* const> marks, gpu::stream_ref stream, std::uint64_t end);

 private:
  struct mark {
    std::uint64_t end;
    gpu::event* event;
  };
  void throw_if_over(std::unique_lock<std::mutex>& lock) const;
  void watch_for_rows(std::uint64_t end) const;
  void help_until_rows(std::uint64_t end, const std::function<void()>& meanwhile);
  void sleep_until_rows(std::unique_lock<std::mutex>& lock, std::uint64_t end, const std::function<void()>& meanwhile);
  static void wake(std::unique_lock<std::mutex>& lock, std::condition_variable& who, bool has_come);
  gpu::event* take_event();

  mutable std::mutex mutex_;
  mutable std::condition_variable conductor_, consumer_;
  const bool host_, watchful_;
  consumer_help* const help_;
  event_pool events_;
  std::deque<mark> published_marks_, released_marks_;
  std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> released_{0};
  std::uint64_t held_ = 0;
  std::uint64_t wanted_room_ = nothing;    ///< the conductor sleeps until so many rows are released
  std::uint64_t wanted_blocks_ = nothing;  ///< or so many blocks have come out
  std::uint64_t wanted_rows_ = nothing;    ///< the consumer sleeps until rows before it are published
  std::atomic<std::uint64_t> blocks_out_{0};
  std::exception_ptr failure_;
  std::uint64_t later_failures_ = 0;
  bool stopped_ = false;

  // Looked at for each batch, and seldom written by anybody but the consumer.
  alignas(cache_line) std::uint64_t ready_ = 0;  ///< the consumer's stream waits, or need not wait, for the rows before
  std::chrono::steady_clock::time_point read_until_;  ///< the consumer's, too
  std::atomic<bool> over_{false};                     ///< stopped_ or failure_, for those who hold no lock
};

}  // namespace penstock::pipeline
