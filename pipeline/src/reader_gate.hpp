#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace penstock::pipeline {

/// What travels through the graph: TBB copies messages, so it is two numbers.
struct ticket {
  std::uint64_t sequence = 0;  ///< counts all submissions; never starts again
  std::uint64_t block = 0;
};

/// The door to reading: as many blocks go through at once as may be read, in the order in which they come, and that
/// number may change meanwhile. They are read by the graph's workers, where there are some, and, above their number, by
/// threads of the gate's own, which are made when they are first needed. Thread-safe.
class reader_gate {
 public:
  struct doors {
    std::function<void(ticket)> to_workers;  ///< lets a worker read it, which calls worker_done() then; does not block
    std::function<void(ticket)> read;        ///< reads it here
    std::function<void(std::list<ticket>)> pass_on;    ///< the one ticket, to what comes next
    std::function<std::size_t(bool waiting)> readers;  ///< after each block: how many may be at work; null: as at first
  };

  /// `readers` at first; of these as many as `workers` are the graph's. `watchful`: there are processors to spare, and
  /// one thread that has nothing to read watches for the next block for a while before it sleeps. Throws
  /// pipeline::error where nobody would read.
  reader_gate(std::size_t workers, std::size_t readers, bool watchful, doors how);
  /// No block may be inside.
  ~reader_gate();
  reader_gate(const reader_gate&) = delete;
  reader_gate& operator=(const reader_gate&) = delete;

  /// Throws std::bad_alloc; the block is not inside then.
  void let_in(ticket next);
  void worker_done();

 private:
  void done();
  void admit(std::list<ticket>& from);
  void make_threads(std::size_t readers);
  void read_on_own_thread(std::stop_token stop);
  void watch_for_a_block(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);

  const std::size_t workers_;
  const bool watchful_;
  const doors how_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Tickets move from list to list, so that no memory is asked for where nobody could be told that there is none.
  std::list<ticket> waiting_;             ///< for a reader
  std::list<ticket> for_own_;             ///< admitted, for a thread of the gate's own
  std::atomic<bool> has_for_own_{false};  ///< for who watches
  bool watched_ = false;                  ///< a thread does
  std::size_t limit_ = 1;
  std::size_t at_work_ = 0, workers_at_work_ = 0;
  std::vector<std::jthread> own_;
};

}  // namespace penstock::pipeline
