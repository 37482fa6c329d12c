#pragma once

#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>
#include <penstock/pipeline/batch.hpp>
#include <penstock/train/metrics.hpp>
#include <penstock/train/stage.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>

namespace penstock::train {

/// What the loop tells a model with each batch.
struct step_place {
  double learning_rate = 0;     ///< by the schedule; at the batch that ends a step
  std::uint64_t step = 0;       ///< steps made before this one, since the first epoch
  bool training = true;         ///< false: the batch is only evaluated, and nothing changes but the sums
  bool begins = true;           ///< the first batch of a step: gradients of an unfinished one before it do not count
  bool ends = true;             ///< the last batch of a step: the parameters change
  std::uint64_t first_row = 0;  ///< numbers the batch's rows within the epoch
  /// In the device's memory: the loss, the rows, and what else of it there is, are added here in the order of the
  /// stream.
  metrics* sums = nullptr;
};

using state_visitor = std::function<void(const state_item&)>;

/// A model of yours that trainer takes through its epochs, within the budget and with checkpoints.
///
/// plan(device) lists what it takes, whatever its options; pure, and the same at each call. bind(stream, memory) finds
/// its items in planned memory and prepares the first step; it may block. step(batch, place) issues the work for a
/// batch to the stream that was bound, which is the batch's; it neither blocks nor allocates. visit_state(visitor)
/// shows everything that a run which goes on needs, under paths that begin with "/model/", one for each; the same
/// items, in the same order, at each call after bind(). What step() throws ends the pass as pipeline::error, which
/// keeps it.
///
/// A model may have name(), which tells it apart from others in checkpoints, and is not empty.
///
/// It may have visit_gradients(visitor), which shows, likewise, under paths that begin with "/gradients/", all that a
/// step keeps from one of its batches to the next: sums of gradients, and what they are divided by where that is
/// counted. Then a run that is stopped between two batches of a step goes on with the next one, also from a checkpoint:
/// these items are as they were, and step() is told `begins = false`. Without it such a step is made anew, from its
/// first batch.
template <class Model>
concept trainable =
    requires(Model& model, const Model& same, gpu::device device, gpu::stream_ref stream, const gpu::memory& memory,
             const pipeline::batch& batch, const step_place& place, const state_visitor& visitor) {
      { same.plan(device) } -> std::convertible_to<gpu::ledger>;
      model.bind(stream, memory);
      model.step(batch, place);
      model.visit_state(visitor);
    };

/// A model whatever its class.
struct model_functions {
  std::string name{};  ///< not empty
  std::function<gpu::ledger(gpu::device)> plan{};
  std::function<void(gpu::stream_ref, const gpu::memory&)> bind{};
  std::function<void(const pipeline::batch&, const step_place&)> step{};
  std::function<void(const state_visitor&)> visit_state{};
  std::function<void(const state_visitor&)> visit_gradients{};  ///< empty: the model has none
};

/// The functions of a model, which must outlive them.
template <trainable Model>
model_functions functions_of(Model& model) {
  model_functions functions{
      .name = "a model of its own",
      .plan = [&model](gpu::device d) { return gpu::ledger(model.plan(d)); },
      .bind = [&model](gpu::stream_ref stream, const gpu::memory& memory) { model.bind(stream, memory); },
      .step = [&model](const pipeline::batch& batch, const step_place& place) { model.step(batch, place); },
      .visit_state = [&model](const state_visitor& visitor) { model.visit_state(visitor); }};
  if constexpr (requires(const state_visitor& visitor) { model.visit_gradients(visitor); })
    functions.visit_gradients = [&model](const state_visitor& visitor) { model.visit_gradients(visitor); };
  if constexpr (requires { std::string(model.name()); }) functions.name = model.name();
  return functions;
}

/// Memory that a model takes in a trainer: its own, and what the loop keeps for it. Pure but for what the model's
/// plan() does.
gpu::ledger plan(gpu::device d, const model_functions& model);

}  // namespace penstock::train
