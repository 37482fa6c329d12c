#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::pipeline {

/// How many bodies run at once where `threads` are asked for: oneTBB has no more workers than it found processors. A
/// flow's first stage goes beyond that, on threads beside, and no other one.
std::size_t flow_workers(std::size_t threads);

/// Blocks go through stages that run in parallel, and come out in the order in which they went in: a flow graph in a
/// task arena of its own, driven by a thread of its own, so that a consumer that waits lends nothing and owes nothing.
///
/// Bodies must not throw and must not wait for the device or for other blocks. How many blocks are inside is bounded by
/// who submits (a block enters only when it holds a slot), not by queues.
class flow {
 public:
  struct stage {
    std::size_t concurrency = 1;
    std::function<void(std::uint64_t block)> body;
  };

  /// How blocks go through the first stage.
  struct reading {
    /// Where no other stage follows, on threads of its own, which sleep while there is nothing to read, and without a
    /// graph: all workers of an arena look for work whenever a block comes, on processors that the launches of a
    /// device's consumer need.
    bool apart = false;
    /// There are processors to spare: one of these threads watches for the next block for a while before it sleeps.
    bool watchful = false;
    /// Called after each block, one at a time, with whether another waits for it: how many may be in that stage from
    /// then on. Where these are more than its concurrency, threads beside the arena's take part. None: as many as ever.
    std::function<std::size_t(bool waiting)> readers;
  };

  /// Runs `threads` bodies at once, as far as flow_workers() goes. `out` is called for one block at a time, in the
  /// order of submission. Throws pipeline::error where the system gives no thread.
  flow(std::size_t threads, std::vector<stage> stages, std::function<void(std::uint64_t block)> out, reading how);
  flow(std::size_t threads, std::vector<stage> stages, std::function<void(std::uint64_t block)> out)
      : flow(threads, std::move(stages), std::move(out), reading()) {}
  /// Waits for the blocks inside.
  ~flow();
  flow(const flow&) = delete;
  flow& operator=(const flow&) = delete;

  /// Lets a block in. One thread at a time. Does not block. Throws std::bad_alloc; the block is not inside then.
  void submit(std::uint64_t block);
  /// Blocks until every block that was let in has come out.
  void drain();
  /// Runs `work` on the caller's thread inside the arena: parallel loops in it use the arena's threads.
  void inside(const std::function<void()>& work);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::pipeline
