#pragma once

#include "epoch_run.hpp"

#include <penstock/gpu/stream.hpp>

#include <memory>
#include <span>

namespace penstock::pipeline {

/// What fills the rings in a run: the conductor, with a flow of blocks, or shared_reading where rows need nothing but
/// reading.
class ring_filler {
 public:
  ring_filler() = default;
  ring_filler(const ring_filler&) = delete;
  ring_filler& operator=(const ring_filler&) = delete;
  /// Stops the run in progress, and ends its threads.
  virtual ~ring_filler() = default;

  /// Begins a run; one before must be over (stop()).
  virtual void start(std::shared_ptr<epoch_run> next) = 0;
  /// Stops the run in progress, if any, and returns when no thread, copy or kernel of it is at work.
  virtual void stop() = 0;
  /// Later work on slots and rings waits for all that uses rows of the run that is over: of batches that came back, and
  /// what was issued to `consumers` until now. Between runs. Throws gpu::error; may be tried again.
  virtual void wait_for_users(std::span<const gpu::stream_ref> consumers) = 0;
  /// Later work on slots and rings waits for the event. Between runs.
  virtual void wait_for(const gpu::event& before) = 0;
  /// A stream for consumers that bring none.
  virtual gpu::stream_ref consumer_stream() const noexcept = 0;
};

}  // namespace penstock::pipeline
