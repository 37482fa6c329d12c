#pragma once

#include "step_state.hpp"

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE

#include <cmath>

namespace penstock::train {

// How the step state changes between launches: once for both devices, run by one thread.

PENSTOCK_HOST_DEVICE inline void apply_begin(const update_rule& rule, step_state& s) {
  train::progress& p = s.progress;
  s.gradient_scale = s.weight_in_step > 0 ? 1.0 / (s.weight_in_step * p.loss_scale) : 0.0;
  bool overflow = false;
  // Of an update without rows the gradients are those of an older step, or of none.
  if (s.weight_in_step > 0 && (rule.clip_norm > 0 || rule.scaled)) {
    const double norm = sqrt(s.gradient_squares) * s.gradient_scale;
    const bool bounded = norm - norm == 0;
    overflow = rule.scaled && !bounded && p.loss_scale > 1;
    // A gradient can overflow where no loss did: its rows are those of the last pass, as far as can be told.
    const bool rows_are_finite = p.bad_input == progress::no_row && p.bad_loss == progress::no_row;
    if (!bounded && !overflow && rows_are_finite && s.block.first_row < p.bad_gradient)
      p.bad_gradient = s.block.first_row;
    if (rule.clip_norm > 0 && norm > rule.clip_norm) s.gradient_scale *= rule.clip_norm / norm;
  }
  const bool finite =
      p.bad_input == progress::no_row && p.bad_loss == progress::no_row && p.bad_gradient == progress::no_row;
  const bool targets = p.bad_label == progress::no_row && p.bad_weight == progress::no_row;
  s.blocked = !finite || !targets || overflow || !(s.weight_in_step > 0);
  if (!rule.rate_is_noted) s.learning_rate = rule.learning_rate;
  s.weight_in_step = 0;
  if (s.blocked) {
    p.running = p.at_step;
    if (overflow && finite && targets) {
      ++p.skipped;
      p.loss_scale /= 2;
      p.clean_steps = 0;
      return;
    }
    if (!rule.skip || !targets || finite) return;
    ++p.skipped;
    p.bad_input = p.bad_loss = p.bad_gradient = progress::no_row;
    return;
  }
  p.at_step = p.running;
  ++p.steps;
  if (rule.scaled && ++p.clean_steps == clean_steps_to_double) {
    if (p.loss_scale < largest_loss_scale) p.loss_scale *= 2;
    p.clean_steps = 0;
  }
  s.correction1 = 1.0 / (1.0 - pow(rule.beta1, static_cast<double>(p.steps)));
  s.correction2 = 1.0 / (1.0 - pow(rule.beta2, static_cast<double>(p.steps)));
}

PENSTOCK_HOST_DEVICE inline void apply_discard(step_state& s) {
  s.weight_in_step = 0;
  s.progress.running = s.progress.at_step;
}

PENSTOCK_HOST_DEVICE inline void apply_reset(const metrics& start, bool forgive, step_state& s) {
  if (forgive) s.progress.bad_input = s.progress.bad_loss = s.progress.bad_gradient = progress::no_row;
  s.progress.running = s.progress.at_step = start;
}

}  // namespace penstock::train
