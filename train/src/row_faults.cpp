#include "row_faults.hpp"

#include <penstock/train/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace penstock::train {
namespace {

std::string bad_target(const stage_options& stage) {
  const std::size_t classes = classes_of(stage.loss, stage.model.outputs);
  if (stage.targets != target::values) {
    const std::size_t first = stage.targets == target::label ? 0 : 1;
    return fmt::format("its label is outside {} to {}; labels count from {}, and the model has {} classes", first,
                       first + classes - 1, first, classes);
  }
  if (classes == 0) return "a target is not finite; mend the data, or mask the row with a weight of 0 (--weights)";
  if (std::holds_alternative<softmax_cross_entropy>(stage.loss))
    return "its targets are no probabilities that add up to 1";
  return "a target is outside 0 to 1";
}

std::string bad_gradient(const stage_options& stage, double loss_scale) {
  const std::string skip = "or let such steps be skipped (non_finite::skip, --skip-non-finite)";
  if (stage.precision == precision::fp16)
    return fmt::format(
        "the gradient of the step with this row overflows fp16, though its loss is finite and the loss "
        "scale is {}; compute in bf16 or float32 (--precision), make targets or weights smaller, {}",
        loss_scale, skip);
  return "the gradient of the step with this row, whose norm is to be clipped, is not finite, though its loss is; "
         "lower "
         "the learning rate, make inputs or targets smaller, " +
         skip;
}

std::string bad_loss(const stage_options& stage) {
  return fmt::format(
      "the loss is not finite; {}lower the learning rate, or let such steps be skipped (non_finite::skip, "
      "--skip-non-finite)",
      stage.precision == precision::fp16
          ? "outputs, or inputs that are not normalised, may be beyond fp16's range (65504): compute in bf16 or "
            "float32 (--precision), "
          : "");
}

/// A row of the source by its position in an epoch, and where the pipeline has it from.
struct named_row {
  std::uint64_t row;
  std::string place;  ///< "file:dataset row 5: "; empty: made by a transform
};

named_row name_row(const rows_of_pass& rows, const std::string& field, std::uint64_t at) {
  const std::uint64_t row = rows.data.row_order().row(rows.epoch, at);
  const auto stored = rows.data.place_of(field, row);
  return {row, stored ? fmt::format("{}:{} row {}: ", stored->file, stored->dataset, stored->row) : ""};
}

/// Whichever input it is of.
std::uint64_t row_of_input(const progress& p) {
  return p.bad_input == progress::no_row ? p.bad_input : p.bad_input & ~progress::of_second_input;
}

}  // namespace

std::uint64_t first_fault(const progress& p) {
  return std::min({row_of_input(p), p.bad_loss, p.bad_gradient, p.bad_label, p.bad_weight});
}

bool leaves_model_whole(const progress& p) {
  constexpr auto none = progress::no_row;
  return p.bad_gradient == none && (p.bad_loss == none || row_of_input(p) <= p.bad_loss);  // which follows from it
}

/// Rows are numbered by their position in the epoch; the order knows which rows of the source they are, and the
/// pipeline where those are stored.
void check_rows(const progress& p, const trainer_options& options, const learner& model, const rows_of_pass& rows) {
  const bool ignored = options.stage.non_finite == non_finite::skip;
  const auto fail = [&](const std::string& field, std::uint64_t at, const std::string& sentence) {
    const auto [row, place] = name_row(rows, field, at);
    throw error(fmt::format("{}{} (row {} of the {}, epoch {})", place, sentence, row, rows.what, rows.epoch),
                {.epoch = rows.epoch, .step = p.steps, .rows = {row}, .of_data = leaves_model_whole(p)});
  };
  constexpr auto none = progress::no_row;
  if (p.bad_label != none) fail(options.label, p.bad_label, bad_target(options.stage));
  if (p.bad_weight != none) fail(options.weight, p.bad_weight, "its weight is negative or not finite");
  // A model of the user's skips no steps.
  if (!model.name().empty() && !std::isfinite(p.running.loss_sum))
    throw error(fmt::format("the loss of {} is not finite after {} steps; lower the learning rate, or mend the data",
                            model.name(), p.steps),
                {.epoch = rows.epoch, .step = p.steps});
  if (ignored) return;
  if (p.bad_input != none)
    fail((p.bad_input & progress::of_second_input) != 0 ? options.x2 : options.x,
         p.bad_input & ~progress::of_second_input,
         "an input is not finite (NaN or infinity), or becomes so when it is normalised; mend the data, or let "
         "such steps be skipped (non_finite::skip, --skip-non-finite)");
  if (p.bad_loss != none) fail(options.x, p.bad_loss, bad_loss(options.stage));
  if (p.bad_gradient != none) fail(options.x, p.bad_gradient, bad_gradient(options.stage, p.loss_scale));
}

std::string left_out(const progress& p, const trainer_options& options, const rows_of_pass& rows) {
  if (p.bad_input == progress::no_row && p.bad_loss == progress::no_row) return {};
  const auto [row, place] = name_row(rows, options.x, first_fault(p));
  return fmt::format(
      "{}an input or the loss is not finite (row {} of the {}): the loss is that of the other rows, also "
      "where there are more such rows behind it",
      place, row, rows.what);
}

void check_that_rows_count(std::uint64_t valid_rows, const metrics& counted, const trainer_options& options,
                           const rows_of_pass& rows) {
  if (valid_rows == 0 || counted.weight_sum > 0) return;
  std::vector<std::string> causes;
  const std::vector<double>& of_classes = options.stage.class_weights;
  const pipeline::pipeline_plan& plan = rows.data.plan();
  const bool mask_alone = options.weight == plan.damage_mask && options.stored_weight.empty();
  if (!options.weight.empty() && !mask_alone) causes.emplace_back("the weights of all rows are 0");
  if (std::find(of_classes.begin(), of_classes.end(), 0) != of_classes.end())
    causes.emplace_back("the weights of their classes are 0");
  if (!plan.damage_mask.empty()) causes.emplace_back("all are damaged");
  throw error(fmt::format("no row of the {} counts: {}", rows.what, fmt::join(causes, ", or ")),
              {.epoch = rows.epoch, .of_data = true});
}

void check_that_steps_count(const progress& before, const progress& now, const trainer_options& options,
                            const rows_of_pass& rows) {
  const std::uint64_t skipped = now.skipped - std::min(now.skipped, before.skipped);
  if (now.at_step.weight_sum > 0 || skipped == 0 || now.loss_scale < before.loss_scale) return;
  const bool fp16 = options.stage.precision == precision::fp16;
  throw error(
      fmt::format("no step of epoch {} changed anything: {} were skipped, as inputs, losses or gradients were "
                  "not finite; lower the learning rate, or mend the data{}",
                  rows.epoch, skipped,
                  fp16 ? fmt::format(", or compute in bf16 or float32: the loss scale is {}", now.loss_scale) : ""),
      {.epoch = rows.epoch, .step = now.steps, .rows = {}, .file = {}});
}

own_faults::~own_faults() {
  try {
    forget();
  } catch (const std::exception&) {  // a device that fails for good: what has failed before says more
  }
}

void own_faults::forget() {
  const progress now = of_.progress();
  if (first_fault(now) != progress::no_row) of_.set_progress(now);
}

}  // namespace penstock::train
