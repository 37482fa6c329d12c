#pragma once

#include "batch_lease.hpp"
#include "conductor.hpp"
#include "ground.hpp"
#include "shared_reading.hpp"
#include "statistics.hpp"
#include "take_host_memory.hpp"

#include <penstock/pipeline/pipeline.hpp>

namespace penstock::pipeline {

struct pipeline::impl {
  explicit impl(std::shared_ptr<const ground> base) : on(std::move(base)), count(*on), trace(trace_for(*on)) {
    if (on->sizes.needs_only_reading) {
      auto shared = std::make_unique<shared_reading>(*on, count, trace.get());
      help = shared.get();
      hands = std::move(shared);
    } else {
      hands = std::make_unique<conductor>(*on, count, trace.get());
    }
  }
  ~impl() {
    end_run_if_possible();
    if (lease) lease->outlive();
  }

  /// Stops the run in progress, waits until it is over, and lets later work wait for the streams that use its rows.
  /// Throws gpu::error where these cannot be marked; the run is over then all the same; and std::bad_alloc where it
  /// cannot be ended yet.
  void end_run();
  /// For destructors: a device that fails altogether must not end the program. The next run tries again.
  void end_run_if_possible() noexcept;
  std::shared_ptr<batch_lease> begin_run(std::uint64_t first, std::uint64_t epochs, const consume_options& options);

  schedule::sizes sizes_of_a_run() const noexcept {
    const batch_options& batches = on->parts->batch;
    return {on->sizes.block_rows, batches.rows, on->sizes.ring_rows, batches.last, on->sizes.piece_rows};
  }

  /// Of now.
  pipeline_report report(const machine_limits& limits);

  static std::unique_ptr<trace_log> trace_for(const ground& on) {
    const std::size_t bytes = on.parts->trace.bytes;
    if (bytes == 0) return nullptr;
    return take_host_memory(on.parts->faults, memory_items::trace, bytes,
                            [bytes] { return std::make_unique<trace_log>(bytes); });
  }

  std::shared_ptr<const ground> on;
  statistics count;
  std::unique_ptr<trace_log> trace;    ///< where one was asked for
  std::shared_ptr<batch_lease> lease;  ///< of the last run
  bool running = false;
  std::unique_ptr<pipeline_report> at_pause;  ///< while count is paused
  std::vector<gpu::stream_ref> users;         ///< of the run before, for which later work does not wait yet
  std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop;
  consumer_help* help = nullptr;       ///< of `hands`, where the consumer takes part
  std::unique_ptr<ring_filler> hands;  ///< last: its threads end before what they use
};

struct epoch_range::impl {
  std::shared_ptr<batch_lease> lease;
  pipeline::impl* owner = nullptr;
  ~impl();
};

}  // namespace penstock::pipeline
