#pragma once

#include "step_state.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/train/predictor.hpp>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace penstock::train {

/// Names of a predictor's own items, beside the network's and those it has in common with a stage.
namespace predictor_items {
inline constexpr const char* predictions = "train: predictions";
inline constexpr std::array landings{"train: landing place of predictions, even",
                                     "train: landing place of predictions, odd"};
}  // namespace predictor_items

/// The predictor without its compute type.
struct predictor::impl {
  virtual ~impl() = default;
  virtual const void* predict(const void* x, const void* x2, const row_block& block) = 0;
  virtual void set(const input_statistics& statistics) = 0;
  virtual void write(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual step_state read_state() = 0;
  /// Gives the rows of a block whose inputs are not finite to `to`, in order. What predict() gave of it is written
  /// over, in stream order. Blocks, as often whatever their number.
  virtual void name_not_finite(const void* x, const void* x2, const row_block& block,
                               const predictor::row_sink& to) = 0;
  /// Forgets inputs that were not finite.
  virtual void forgive() = 0;

  impl(gpu::stream_ref s, const predictor_options& o, std::shared_ptr<gpu::memory> m)
      : stream(s), options(o), memory(std::move(m)) {}

  gpu::stream_ref stream;
  predictor_options options;
  std::shared_ptr<gpu::memory> memory;
  std::vector<state_item> items;
  bool torn = false;  // loading a checkpoint ended midway
};

/// The options of a stage that would compute what the predictor does.
stage_options stage_options_of(const predictor_options& options);

/// The predictor whose activations are of type S.
template <class S>
std::unique_ptr<predictor::impl> make_typed_predictor(gpu::stream_ref stream, const predictor_options& options,
                                                      std::shared_ptr<gpu::memory> memory);
template <class S>
gpu::ledger plan_predictor(gpu::device d, const predictor_options& options);

}  // namespace penstock::train
