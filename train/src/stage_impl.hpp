#pragma once

#include "input_fault.hpp"
#include "stage_memory.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/train/stage.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::train {

/// The stage without its compute type.
struct stage::impl {
  virtual ~impl() = default;
  virtual void pass(const batch_rows& batch, bool gradient) = 0;
  virtual void update(double learning_rate) = 0;
  virtual void step(const batch_rows& batch, double learning_rate) = 0;
  virtual void discard() = 0;
  virtual void reset(const metrics& start) = 0;
  /// The parameters were written from outside.
  virtual void changed() noexcept = 0;
  /// Whether the next pass of a step adds to the gradients that are there.
  virtual void gradients_are_set(bool) noexcept = 0;
  virtual void observe(const batch_rows& batch) = 0;
  virtual std::string algorithms() const = 0;
  virtual std::string set_algorithms(const std::string& chosen) = 0;
  virtual void set_normalisation(const input_statistics& statistics) = 0;

  impl(gpu::stream_ref s, const stage_options& o, std::shared_ptr<gpu::memory> m)
      : stream(s), options(o), memory(std::move(m)), arrived(s.device()) {
    staging = memory->at(gpu::memory_kind::pinned, stage_items::staging);
    landing = reinterpret_cast<step_state*>(memory->at(gpu::memory_kind::pinned, stage_items::progress).data());
    state = reinterpret_cast<step_state*>(memory->at(gpu::memory_kind::device, stage_items::state).data());
    sums = {reinterpret_cast<double*>(memory->at(gpu::memory_kind::device, stage_items::moments).data()),
            3 * o.model.inputs};
  }

  void read(const std::byte* from, std::byte* to, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, staging.size());
      gpu::copy(stream, staging.data(), from + done, piece);
      stream.synchronize();
      std::memcpy(to + done, staging.data(), piece);
      done += piece;
    }
  }
  void write(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, staging.size());
      std::memcpy(staging.data(), from + done, piece);
      gpu::copy(stream, to + done, staging.data(), piece);
      stream.synchronize();
      done += piece;
    }
  }
  /// The progress of the state that has arrived, with bad_input as it is documented.
  train::progress landed() const noexcept {
    train::progress there = landing->progress;
    there.bad_input = from_order_of_input(there.bad_input);
    return there;
  }
  /// With such a progress, as write_step_state() takes it. Blocks.
  step_state read_step_state() {
    stream.synchronize();  // a request for the latest progress may still be writing to the landing place
    gpu::copy(stream, landing, state, sizeof(step_state));
    stream.synchronize();
    asked = false;
    step_state now = *landing;
    latest = now.progress = landed();
    return now;
  }
  /// It is the latest progress then. Blocks.
  void write_step_state(const step_state& now) {
    step_state there = now;
    there.progress.bad_input = to_order_of_input(now.progress.bad_input);
    write(reinterpret_cast<std::byte*>(state), reinterpret_cast<const std::byte*>(&there), sizeof there);
    latest = now.progress;
  }
  /// The same of metrics that were set in stream order: an answer that is on its way, or has arrived, is of before.
  void set_latest(const metrics& start) {
    asked = false;
    latest.running = latest.at_step = start;
    if (options.non_finite == non_finite::skip)
      latest.bad_input = latest.bad_loss = latest.bad_gradient = train::progress::no_row;
  }

  /// A batch of a step, with numbers for its rows.
  batch_rows numbered(batch_rows batch) const noexcept {
    if (batch.first_row == batch_rows::counted_on) batch.first_row = rows_in_step;
    return batch;
  }

  gpu::stream_ref stream;
  stage_options options;
  std::shared_ptr<gpu::memory> memory;
  std::span<std::byte> staging;
  step_state* landing = nullptr;
  step_state* state = nullptr;
  std::vector<state_item> items;
  std::vector<state_item> gradient_items;
  std::span<std::uint64_t> confusion;  // empty where it is not counted
  std::span<double> sums;              // of what was observed: counts, means, squares
  input_statistics normalisation;
  gpu::event arrived;
  bool asked = false;
  train::progress latest;
  std::uint64_t rows_in_step = 0;  // valid ones, since the last update
  std::uint64_t batches_in_step = 0;
  bool torn = false;  // an update ended midway; what of the state was written since
  std::size_t mended_bytes = 0;
};

/// The stage whose activations are of type S.
template <class S>
std::unique_ptr<stage::impl> make_typed_stage(gpu::stream_ref stream, const stage_options& options,
                                              std::shared_ptr<gpu::memory> memory);

}  // namespace penstock::train
