#pragma once

#include <penstock/train/metrics.hpp>

#include <cstdint>

namespace penstock::train {

/// The first row that was at fault, by its `first_row` number, and how the steps went.
struct progress {
  static constexpr std::uint64_t no_row = ~std::uint64_t{0};
  /// Added to bad_input where it is the second input's; of a row with both at fault it is the first one's.
  static constexpr std::uint64_t of_second_input = std::uint64_t{1} << 62;
  metrics running;  ///< up to the last accumulate() or evaluate()
  metrics at_step;  ///< up to the last update()
  std::uint64_t bad_input = no_row;
  std::uint64_t bad_loss = no_row;
  /// The first row of the batch that ended a step whose gradient is not finite, where inputs and losses are: it is
  /// looked at where it is clipped, and in fp16, whose loss scale is at 1 then.
  std::uint64_t bad_gradient = no_row;
  std::uint64_t bad_label = no_row;   ///< a target that the loss does not take
  std::uint64_t bad_weight = no_row;  ///< a row's weight that is negative or not finite
  std::uint64_t steps = 0;            ///< updates that changed the parameters
  /// Updates left out, because of values that are not finite (non_finite::skip), or of fp16's gradients, which
  /// overflowed. Not counted: updates without weight, and all that follow a row at fault.
  std::uint64_t skipped = 0;
  double loss_scale = 1;          ///< of fp16's gradients
  std::uint64_t clean_steps = 0;  ///< since it last changed
};

/// Whether faults of rows, if any, left weights and moments that are worth keeping: no loss and no gradient says that
/// the run diverges. None is at fault, or a loss by the inputs of its row.
bool leaves_model_whole(const progress& p);

/// A step between two of its batches: what accumulate() has added since the last update(), but for the sums of
/// gradients, which the stage holds; for checkpoints.
struct begun_step {
  std::uint64_t batches = 0;                   ///< accumulated; 0: no step has begun
  std::uint64_t rows = 0;                      ///< of them, those that are valid
  double weight = 0;                           ///< of these rows, which update() divides by
  metrics running{};                           ///< progress::running, with these rows
  std::uint64_t bad_input = progress::no_row;  ///< the first row at fault, as in progress: the update will be left out
  std::uint64_t bad_loss = progress::no_row;
};

}  // namespace penstock::train
