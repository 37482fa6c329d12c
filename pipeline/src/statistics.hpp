#pragma once

#include "cache_line.hpp"
#include "device_stall.hpp"
#include "flow.hpp"
#include "ground.hpp"
#include "pauses.hpp"
#include "reader_tuner.hpp"
#include "stage_account.hpp"
#include "stamps.hpp"
#include "wait_sum.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace penstock::pipeline {

/// What the conductor waits for when it has nothing to do.
enum class obstacle : std::uint8_t { blocks, rows, copies };
inline constexpr std::size_t obstacles = 3;

/// Work of the conductor's thread of one kind.
struct work_sum {
  time_sum busy;
  std::atomic<std::uint64_t> blocks{0}, bytes{0};

  void add(clock::duration time, std::uint64_t some_bytes, std::uint64_t some_blocks) noexcept {
    busy.add(time);
    bytes.fetch_add(some_bytes, std::memory_order_relaxed);
    blocks.fetch_add(some_blocks, std::memory_order_relaxed);
  }
};

/// What a pipeline did since it was built; what its report is made of. The flow's and the conductor's parts are
/// thread-safe.
struct statistics {
  explicit statistics(const ground& on)
      : readers(on.sizes.threads, on.sizes.most_threads),
        flow(1 + on.fields.host_transforms.size()),
        device_transforms(on.fields.device_transforms.size()),
        stall(on.device(), on.parts->faults),
        waits(way_of(on).states()) {
    flow[0].set_workers(on.sizes.threads);
    for (std::size_t t = 0; t < on.fields.host_transforms.size(); ++t)
      flow[t + 1].set_workers(std::min(on.fields.host_transforms[t].concurrency, flow_workers(on.sizes.threads)));
  }

  static way way_of(const ground& on) {
    return {1 + on.fields.host_transforms.size(), on.fields.device_transforms.size()};
  }

  void begin_run(clock::time_point now) {
    readers.begin_run();
    for (stage_account& stage : flow) stage.begin_run(now);
    slots.begin_run(now);
    hands.begin_run(now);
  }
  void end_run(clock::time_point now) {
    for (stage_account& stage : flow) stage.end_run(now);
    slots.end_run(now);
    hands.end_run(now);
    for (wait_sum* wait : {&no_slot, &no_rows}) wait->end(now);
    for (wait_sum& wait : idle) wait.end(now);
  }

  /// Nobody waits for rows from now on. The consumer's thread, as resume().
  void pause(clock::time_point now) {
    paused.begin(now);
    for (stage_account& stage : flow) stage.pause(now);
    slots.pause(now);
    hands.pause(now);
  }
  void resume(clock::time_point now) {
    paused.end(now);
    for (stage_account& stage : flow) stage.resume(now);
    slots.resume(now);
    hands.resume(now);
  }

  pauses paused;  ///< the times below leave them out
  alignas(cache_line) reader_tuner readers;
  std::deque<stage_account> flow;  ///< reading, then each host transform
  stage_account slots;             ///< "waiting" are those in use
  stage_account hands;  ///< the conductor; "waiting" are blocks that came out of the flow and are not put out
  wait_sum no_slot{paused}, no_rows{paused};  ///< a block could not be let into the flow
  work_sum copy;                              ///< issuing copies; bytes are those of the copies
  work_sum gather;                            ///< issuing gathers; on the host, doing them
  std::deque<work_sum> device_transforms;
  std::array<wait_sum, obstacles> idle{wait_sum(paused), wait_sum(paused), wait_sum(paused)};  ///< of the conductor
  highest images_in_use, ring_rows_in_use;

  // The consumer's side; one thread.
  alignas(cache_line) device_stall stall;
  std::uint64_t failures = 0;  ///< of runs that are over
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  double seconds = 0;  ///< of runs that are over, pauses included
  double first_batch_seconds = 0;
  double wait_seconds = 0;
  std::vector<double> waits;  ///< as stamps::charge
};

}  // namespace penstock::pipeline
