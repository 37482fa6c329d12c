#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// The flow graph: blocks go through stages that run in parallel, and come out in the order in which they went in. It
/// runs in a task arena of its own, driven by a thread of its own, so that a consumer that waits lends nothing and owes
/// nothing.
///
/// Bodies must not throw and must not wait for the device or for other blocks. How many blocks are inside is bounded by
/// who submits (a block enters only when it holds a slot), not by queues.
class flow {
 public:
  struct stage {
    std::size_t concurrency = 1;
    std::function<void(std::uint64_t block)> body;
  };

  /// Runs `threads` bodies at once. `out` is called for one block at a time, in the order of
  /// submission. `readers`, where there is one, is called after each block of the first stage, one at a time, with
  /// whether another waits for it, and says how many may be in that stage from then on; where these are more than its
  /// concurrency, threads beside the arena's take part.
  flow(std::size_t threads, std::vector<stage> stages, std::function<void(std::uint64_t block)> out,
       std::function<std::size_t(bool waiting)> readers = {});
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
