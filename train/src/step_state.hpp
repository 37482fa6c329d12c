#pragma once

#include <penstock/train/stage.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// Rows that go through the stage together. The rows from `valid` on are padding, and rows of weight 0 are masked:
/// whatever they hold, they become zeros and contribute nothing.
struct row_block {
  std::size_t rows = 0;
  std::size_t valid = 0;
  std::uint64_t first_row = 0;
};

/// What steps leave behind, in the device's memory: read and changed by kernels only, so that no step waits for the
/// host.
struct step_state {
  train::progress progress;       ///< whose bad_input is in the form of input_fault.hpp here
  row_block block;                ///< of the pass under way
  const void* targets = nullptr;  ///< of its rows
  const void* weights = nullptr;  ///< of its rows; null: all 1
  double weight_in_step = 0;      ///< of the rows accumulated since the last update
  double gradient_squares = 0;    ///< of the gradient sums, where the step is clipped
  std::uint32_t blocked = 0;      ///< the update under way changes nothing
  // What the optimizer multiplies with in the update under way.
  double gradient_scale = 0;
  double learning_rate = 0;
  double correction1 = 1;  ///< 1 / (1 - beta1^t)
  double correction2 = 1;  ///< 1 / (1 - beta2^t)
};

// The loss scale of fp16: halved at an overflow, doubled after so many steps without one.
inline constexpr double first_loss_scale = 65536;
inline constexpr double largest_loss_scale = 16777216;
inline constexpr std::uint64_t clean_steps_to_double = 2000;

/// What begin_update() needs of the optimizer.
struct update_rule {
  double learning_rate = 0;
  bool rate_is_noted = false;  ///< in the state, by take()
  double beta1 = 0;
  double beta2 = 0;
  double clip_norm = 0;  ///< 0: gradient_squares is not looked at
  bool skip = false;     ///< a step that is not finite is counted, and the next one may change the parameters again
  bool scaled = false;   ///< the loss scale follows overflows of the gradient
};

}  // namespace penstock::train
