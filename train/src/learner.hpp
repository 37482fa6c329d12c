#pragma once

#include <penstock/pipeline/batch.hpp>
#include <penstock/train/own_model.hpp>
#include <penstock/train/stage.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train {

/// What paths of gradients begin with.
inline constexpr std::string_view gradients_group = "/gradients/";

/// What the training loop and its checkpoints see of a model, be it the stage or one of the user's own. Nothing but
/// what says so waits for the device.
class learner {
 public:
  virtual ~learner() = default;

  virtual gpu::stream_ref stream() const = 0;
  /// Forward and backward, and an update where the place ends a step; without training, forward only.
  virtual void step(const pipeline::batch& batch, const step_place& place) = 0;
  /// Forgets a step that has begun, and its metrics.
  virtual void discard() = 0;
  /// A step that has begun; its gradients stay. Of a model that shows none it is forgotten: there is no such step then.
  /// Blocks.
  virtual begun_step begun() = 0;
  /// Goes on with it, after reset() to the metrics before it. Blocks.
  virtual void go_on(const begun_step& step) = 0;
  /// Sets the metrics.
  virtual void reset(const metrics& start = {}) = 0;
  /// Blocks.
  virtual train::progress progress() = 0;
  /// The last answer that has arrived.
  virtual const train::progress& latest_progress() = 0;

  virtual const std::vector<state_item>& state() const = 0;
  /// Both block.
  virtual void read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes) = 0;
  virtual void write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) = 0;
  /// The sums of a step that has begun, which read_state() reads; empty where the model shows none.
  virtual const std::vector<state_item>& gradients() const = 0;
  /// Blocks.
  virtual void write_gradients(const state_item& item, std::size_t offset, const std::byte* from,
                               std::size_t bytes) = 0;
  /// What is no state_item: steps made, and fp16's loss scale and its clean steps.
  virtual void set_progress(const train::progress& there) = 0;
  /// Of the inputs; empty where the model takes them as they are.
  virtual input_statistics normalisation() const = 0;
  virtual void set_normalisation(const input_statistics& statistics) = 0;

  /// Of products; see stage.
  virtual std::string algorithms() const { return {}; }
  virtual std::string set_algorithms(const std::string&) { return {}; }

  /// Null where the model is the user's.
  virtual train::stage* stage() noexcept = 0;
  /// Of the user's model; empty where it is the stage.
  virtual std::string name() const = 0;
};

}  // namespace penstock::train
