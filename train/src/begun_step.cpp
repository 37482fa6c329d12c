#include "begun_step.hpp"

#include "checkpoint_items.hpp"
#include "checkpoint_text.hpp"

#include <penstock/foreign_json.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace penstock::train {

using nlohmann::json;

namespace {

/// How the batches of a step were made.
struct step_split {
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;  // of a batch
};

json row_to_json(std::uint64_t row) { return row == progress::no_row ? json() : json(row); }

/// A row at fault: one of the batches that were accumulated. `marks`: progress::of_second_input, where that may be set.
std::uint64_t row_of(const std::filesystem::path& file, const json& j, std::uint64_t first, std::uint64_t end,
                     std::uint64_t marks = 0) {
  if (j.is_null()) return progress::no_row;
  const std::uint64_t row = count_of(j), number = row & ~marks;
  if (number < first || number >= end)
    refuse(file,
           fmt::format("row {} is at fault in a step that has begun, whose rows are {} to {}", number, first, end - 1));
  return row;
}

step_split split_of(const std::filesystem::path& file, const json& begun, std::uint64_t batches,
                    std::uint64_t step_rows) {
  const step_split split{count_of(begun.at("of")), count_of(begun.at("batch_rows"))};
  if (batches == 0 || batches >= split.batches)
    refuse(file, fmt::format("it stands after {} batches of a step of {}; one that has begun has from 1 to one less",
                             batches, split.batches));
  if (split.rows == 0 || step_rows % split.rows != 0 || step_rows / split.rows != split.batches)
    refuse(file, fmt::format("it stands within a step of {} batches of {} rows, and its steps have {} rows",
                             split.batches, split.rows, step_rows));
  return split;
}

begun_step step_of(const std::filesystem::path& file, const json& there, const trainer_options& options) {
  const std::uint64_t step_rows = options.stage.rows * options.accumulate;
  const json& begun = there.at("begun_step");
  begun_step step{.batches = count_of(begun.at("batches"))};
  const step_split split = split_of(file, begun, step.batches, step_rows);
  const std::uint64_t first = count_of(there.at("next_row")), most = step.batches * split.rows;
  if (first % step_rows != 0 || first >= progress::of_second_input - step_rows)
    refuse(file, fmt::format("its step begins at row {} of an epoch, which is no multiple of the {} rows of a step",
                             first, step_rows));
  step.rows = count_of(begun.at("rows"));
  if (step.rows > most)
    refuse(file, fmt::format("{} batches of {} rows of a step that has begun had {} rows", step.batches, split.rows,
                             step.rows));
  step.weight = begun.at("weight");
  if (!(step.weight >= 0 && std::isfinite(step.weight)))
    refuse(file, fmt::format("the rows of the step that has begun weigh {}; it is 0 or more", step.weight));
  step.running = metrics_of(begun.at("running"));
  step.bad_input = row_of(file, begun.at("bad_input"), first, first + most,
                          sides(options.stage.model) == 2 ? progress::of_second_input : 0);
  step.bad_loss = row_of(file, begun.at("bad_loss"), first, first + most);
  return step;
}

/// Paths of the gradients in the file, by their checksums.
std::vector<std::string> gradients_in(const json& there) {
  std::vector<std::string> paths;
  for (const auto& [path, sum] : there.at("checksums").items())
    if (path.starts_with(gradients_group)) paths.push_back(path);
  return paths;
}

void check_gradients(const std::filesystem::path& file, const std::vector<std::string>& found,
                     const std::vector<state_item>& own) {
  std::vector<std::string> expected;
  for (const state_item& item : own) expected.push_back(item.path);
  std::sort(expected.begin(), expected.end());
  if (found != expected)  // JSON's are in order
    refuse(file, fmt::format("the gradients of its step that has begun are {}, and this model's are {}",
                             found.empty() ? "missing" : in_short(fmt::format("{}", fmt::join(found, ", "))),
                             in_short(fmt::format("{}", fmt::join(expected, ", ")))));
}

/// Why a run of these options makes the step anew; empty: it goes on with it.
std::string why_left(const json& there, const begun_step& step, const learner& to, const trainer_options& options) {
  const json& begun = there.at("begun_step");
  const step_split split{count_of(begun.at("of")), count_of(begun.at("batch_rows"))};
  const auto left = [&](const std::string& why) {
    return fmt::format("it was stopped after {} of the {} batches of {} rows of a step, {}: that step is made anew",
                       step.batches, split.batches, split.rows, why);
  };
  if (split.rows != options.stage.rows)
    return left(fmt::format("and this run's has {} of {} rows", options.accumulate, options.stage.rows));
  if (to.gradients().empty()) return left("and this run's model shows no gradients");
  // They may have been mended since. The updates of a run that skips no steps would be left out from this one on.
  if (options.stage.non_finite == non_finite::fail &&
      (step.bad_input != progress::no_row || step.bad_loss != progress::no_row))
    return left("and an input or the loss of a row of these is not finite, which ends this run");
  const std::string now(name_of(options.stage.precision));
  const std::string then = there.value("precision", now);  // a model of the user's has none
  if (to.name().empty() && then != now)
    return left(fmt::format("whose gradients are of {}, and this run's of {}", in_short(then), now));
  return {};
}

}  // namespace

json to_json(const begun_step& step, const trainer_options& options) {
  return {{"batches", step.batches},
          {"of", options.accumulate},
          {"batch_rows", options.stage.rows},
          {"rows", step.rows},
          {"weight", step.weight},
          {"running", to_json(step.running)},
          {"bad_input", row_to_json(step.bad_input)},
          {"bad_loss", row_to_json(step.bad_loss)}};
}

begun_in_file begun_in(const std::filesystem::path& file, const json& there, const learner& to,
                       const trainer_options& options) {
  const std::vector<std::string> found = gradients_in(there);
  if (!there.contains("begun_step")) {
    if (!found.empty())
      refuse(file, fmt::format("it holds gradients ({}), and says of no step that it has begun",
                               in_short(fmt::format("{}", fmt::join(found, ", ")))));
    return {};
  }
  const begun_step step = step_of(file, there, options);
  if (std::string left = why_left(there, step, to, options); !left.empty()) return {.left = std::move(left)};
  check_gradients(file, found, to.gradients());
  return {.step = step, .gradients = to.gradients()};
}

void check_place(const position& at, std::uint64_t batches_per_epoch) {
  const std::uint64_t begun = at.begun.batches;
  if (begun == 0 || (at.next_batch < batches_per_epoch && begun < batches_per_epoch - at.next_batch)) return;
  throw error(
      fmt::format("a step has begun with {} batches from batch {} on, and an epoch has {} batches; take another "
                  "checkpoint",
                  begun, at.next_batch, batches_per_epoch),
      {.epoch = at.epoch});
}

}  // namespace penstock::train
