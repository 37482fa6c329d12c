#pragma once

#include "learner.hpp"

#include <functional>

namespace penstock::train {

/// Penstock's stage in the loop.
class stage_learner final : public learner {
 public:
  /// The rows of a batch, as the stage takes them.
  using taken = std::function<batch_rows(const pipeline::batch& batch, const step_place& place)>;

  stage_learner(train::stage stage, taken rows) : stage_(std::move(stage)), rows_(std::move(rows)) {}

  gpu::stream_ref stream() const override { return stage_.stream(); }
  void step(const pipeline::batch& batch, const step_place& place) override {
    if (!place.training) return stage_.evaluate(rows_(batch, place));
    if (place.begins && place.ends) return stage_.step(rows_(batch, place), place.learning_rate);
    stage_.accumulate(rows_(batch, place));
    if (place.ends) stage_.update(place.learning_rate);
  }
  void discard() override { stage_.discard(); }
  begun_step begun() override { return stage_.begun(); }
  void go_on(const begun_step& step) override { stage_.go_on(step); }
  void reset(const metrics& start) override { stage_.reset(start); }
  train::progress progress() override { return stage_.progress(); }
  const train::progress& latest_progress() override { return stage_.latest_progress(); }

  const std::vector<state_item>& state() const override { return stage_.state(); }
  void read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes) override {
    stage_.read_state(item, offset, to, bytes);
  }
  void write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) override {
    stage_.write_state(item, offset, from, bytes);
  }
  const std::vector<state_item>& gradients() const override { return stage_.gradients(); }
  void write_gradients(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) override {
    stage_.write_gradients(item, offset, from, bytes);
  }
  void set_progress(const train::progress& there) override {
    stage_.set_steps(there.steps, there.skipped);
    if (stage_.options().precision == precision::fp16) stage_.set_loss_scale(there.loss_scale, there.clean_steps);
  }
  input_statistics normalisation() const override { return stage_.normalisation(); }
  void set_normalisation(const input_statistics& statistics) override { stage_.set_normalisation(statistics); }

  std::string algorithms() const override { return stage_.algorithms(); }
  std::string set_algorithms(const std::string& chosen) override { return stage_.set_algorithms(chosen); }

  train::stage* stage() noexcept override { return &stage_; }
  std::string name() const override { return {}; }

 private:
  train::stage stage_;
  taken rows_;
};

}  // namespace penstock::train
