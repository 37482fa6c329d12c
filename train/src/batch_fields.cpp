#include "batch_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace penstock::train {
namespace {

/// A field of `count` values of the stage's type for each row.
const void* values_of(const pipeline::batch& batch, const std::string& name, const stage_options& stage,
                      std::size_t count, const char* what) {
  const pipeline::field_view view = batch.view(name);
  if (view.element != stage.compute || view.row_bytes != count * size_of(stage.compute))
    throw std::invalid_argument(fmt::format("a row of field '{}' has {} bytes of {}; {} are {} of {}", name,
                                            view.row_bytes, name_of(view.element), what, count,
                                            name_of(stage.compute)));
  return view.data;
}

/// A field of one class for each row.
const void* labels_of(const pipeline::batch& batch, const std::string& name) {
  const std::int32_t* const labels = batch.field<std::int32_t>(name);  // says what else it is
  if (const std::size_t bytes = batch.view(name).row_bytes; bytes != sizeof(std::int32_t))
    throw std::invalid_argument(
        fmt::format("a row of field '{}' has {} labels, and a label is one number; several values in a row (one-hot, "
                    "yes and no) are targets of the kind target::values",
                    name, bytes / sizeof(std::int32_t)));
  return labels;
}

/// The field of the rows' weights: where damaged rows are left out, the mask of those that are intact.
std::string weights_in(const pipeline::batch& batch, const trainer_options& options) {
  const std::string mask(batch.damage_mask());
  if (mask.empty() || options.weight == mask) return options.weight;
  if (!options.weight.empty())
    throw std::invalid_argument(
        fmt::format("the rows have weights ('{}'), and '{}' says which are damaged: let a transform multiply the two "
                    "into '{}', and name that as the weights",
                    options.weight, mask, mask));
  return mask;
}

}  // namespace

void check_batch_rows(const pipeline::pipeline_plan& plan, const stage_options& stage) {
  if (plan.batch_rows == stage.rows) return;
  throw std::invalid_argument(fmt::format(
      "a pipeline's batches are of {} rows, and the trainer's (stage_options::rows) of {} rows; give both the same",
      plan.batch_rows, stage.rows));
}

const void* inputs_of(const pipeline::batch& batch, const trainer_options& options, const std::string& field) {
  const pipeline::field_view x = batch.view(field);
  const stage_options& stage = options.stage;
  if (x.element != stage.compute)
    throw std::invalid_argument(
        fmt::format("field '{}' is {}, and the model computes in {}; read it with .as = type::{}", field,
                    name_of(x.element), name_of(stage.compute), name_of(stage.compute)));
  if (x.row_bytes != stage.model.inputs * size_of(stage.compute))
    throw std::invalid_argument(fmt::format("a row of field '{}' has {} values, and the model {} inputs", field,
                                            x.row_bytes / size_of(x.element), stage.model.inputs));
  return x.data;
}

const void* weights_of(const pipeline::batch& batch, const trainer_options& options, bool training) {
  const std::string weight = weights_in(batch, options);
  if (weight.empty()) return nullptr;
  if (!training) {
    const auto fields = batch.fields();
    if (std::none_of(fields.begin(), fields.end(), [&](const auto& field) { return field.name == weight; }))
      return nullptr;
  }
  return values_of(batch, weight, options.stage, 1, "weights of rows");
}

batch_rows rows_of(const pipeline::batch& batch, const trainer_options& options, bool training) {
  const stage_options& stage = options.stage;
  batch_rows rows{.x = inputs_of(batch, options, options.x),
                  .x2 = options.x2.empty() ? nullptr : inputs_of(batch, options, options.x2),
                  .rows = batch.rows(),
                  .valid_rows = batch.valid_rows(),
                  .first_row = batch.index() * stage.rows};
  rows.targets = stage.targets == target::values
                     ? values_of(batch, options.label, stage, stage.model.outputs, "targets of the loss")
                     : labels_of(batch, options.label);
  rows.weights = weights_of(batch, options, training);
  return rows;
}

}  // namespace penstock::train
