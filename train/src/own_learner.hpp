#pragma once

#include "learner.hpp"

#include <penstock/gpu/memory.hpp>

#include <memory>
#include <span>

namespace penstock::train {

/// A model of the user's in the loop: keeps its metrics, which go back to the last whole step where one is discarded.
class own_learner final : public learner {
 public:
  /// Binds the model; `memory` holds the items of plan(device, model). Throws std::invalid_argument for one without a
  /// name, which would be taken for the stage, and for state that a checkpoint cannot hold.
  own_learner(gpu::stream_ref stream, model_functions model, std::shared_ptr<gpu::memory> memory);

  gpu::stream_ref stream() const override { return stream_; }
  void step(const pipeline::batch& batch, const step_place& place) override;
  void discard() override;
  begun_step begun() override;
  void go_on(const begun_step& step) override;
  void reset(const metrics& start) override;
  train::progress progress() override;
  const train::progress& latest_progress() override;

  const std::vector<state_item>& state() const override { return items_; }
  void read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes) override;
  void write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) override;
  const std::vector<state_item>& gradients() const override { return gradients_; }
  void write_gradients(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) override {
    write_state(item, offset, from, bytes);
  }
  void set_progress(const train::progress& there) override { latest_.steps = there.steps; }
  input_statistics normalisation() const override { return {}; }
  void set_normalisation(const input_statistics&) override {}

  train::stage* stage() noexcept override { return nullptr; }
  std::string name() const override { return model_.name; }

 private:
  /// Metrics as they run, and as they were after the last whole step.
  struct sums {
    metrics running;
    metrics at_step;
  };
  void set_sums(const sums& to);
  void fetch_sums();
  void take_sums();

  gpu::stream_ref stream_;
  model_functions model_;
  std::shared_ptr<gpu::memory> memory_;
  sums* on_device_;
  sums* landing_;
  std::span<std::byte> staging_;
  std::vector<state_item> items_;
  std::vector<state_item> gradients_;
  std::uint64_t batches_in_step_ = 0;
  gpu::event arrived_;
  bool asked_ = false;
  train::progress latest_;
};

}  // namespace penstock::train
