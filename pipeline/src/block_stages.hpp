#pragma once

#include "block_reader.hpp"
#include "epoch_run.hpp"
#include "ground.hpp"
#include "statistics.hpp"
#include "trace_log.hpp"

#include <cstddef>
#include <cstdint>

namespace penstock::pipeline {

/// Blocks in the stages before the device, reading and host transforms: their work, what it took, and where a block
/// stands. What fails ends the run. Thread-safe for different blocks.
class block_stages {
 public:
  block_stages(const ground& on, statistics& count, trace_log* trace)
      : on_(on), count_(count), trace_(trace), reader_(on) {}

  void read(epoch_run& run, std::uint64_t block) const;
  void transform(epoch_run& run, std::uint64_t block, std::size_t transform) const;
  /// How many blocks may be read at once, after one was; `waiting`: another waits for a reader. One thread at a time.
  std::size_t readers_after(bool waiting);

 private:
  template <class F>
  void work(epoch_run& run, std::uint64_t block, std::size_t stage, F work) const;

  const ground& on_;
  statistics& count_;
  trace_log* const trace_;
  block_reader reader_;
  std::size_t readers_ = 0;  ///< as was last told
};

}  // namespace penstock::pipeline
