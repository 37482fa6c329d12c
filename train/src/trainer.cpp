#include <penstock/train/trainer.hpp>

#include "batch_fields.hpp"
#include "begun_step.hpp"
#include "checkpoint.hpp"
#include "own_learner.hpp"
#include "pass_errors.hpp"
#include "row_faults.hpp"
#include "stage_learner.hpp"
#include "training_source.hpp"

#include <penstock/foreign_json.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace penstock::train {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

trainer_options checked(trainer_options options, bool own_model) {
  if (options.accumulate == 0) throw std::invalid_argument("a step accumulates at least one batch");
  if (options.check_every == 0) options.check_every = 1;
  if (!own_model && options.x2.empty() != (sides(options.stage.model) == 1))
    throw std::invalid_argument(options.x2.empty() ? "the model has two inputs; name the field of the second one (x2)"
                                                   : "there is a second field of inputs, and the model has one input");
  check(options.stop);
  check(options.schedule);
  return options;
}

/// A model of the user's may throw what it likes.
void step(learner& model, const pipeline::batch& batch, const step_place& place, pass_errors& failing) {
  if (model.stage() != nullptr) return model.step(batch, place);
  failing.of_user([&] { model.step(batch, place); });
}

}  // namespace

trainer::trainer(gpu::stream_ref stream, trainer_options options, std::shared_ptr<gpu::memory> memory)
    : options_(checked(std::move(options), false)),
      model_(std::make_unique<stage_learner>(train::stage(stream, options_.stage, memory),
                                             [o = options_](const pipeline::batch& batch, const step_place& place) {
                                               return rows_of(batch, o, place.training);
                                             })),
      monitor_(*memory, options_.stage.rows) {
  check_describable(*model_, options_);
}

trainer::trainer(gpu::stream_ref stream, trainer_options options, std::shared_ptr<gpu::memory> memory,
                 model_functions model)
    : options_(checked(std::move(options), true)),
      model_(std::make_unique<own_learner>(stream, std::move(model), memory)),
      monitor_(*memory, options_.stage.rows) {
  check_describable(*model_, options_);
}

trainer::trainer(trainer&&) noexcept = default;
trainer& trainer::operator=(trainer&&) noexcept = default;
trainer::~trainer() = default;

train::stage& trainer::stage() {
  if (train::stage* const there = model_->stage()) return *there;
  throw std::logic_error("this trainer has " + model_->name() + ", and no stage of Penstock's");
}

void trainer::normalise_from(pipeline::pipeline& training, std::stop_token stop) {
  train::stage& stage = this->stage();
  check_batch_rows(training.plan(), options_.stage);
  pass_errors failing(training, "normalisation", {position_.epoch, 0});
  try {
    const own_faults apart(*model_);
    observe_inputs(stage, training, stop, failing);
  } catch (...) {
    failing.rethrow();
  }
}

void trainer::observe_inputs(train::stage& stage, pipeline::pipeline& training, std::stop_token stop,
                             pass_errors& failing) {
  stage.forget();
  monitor_.streams(training.plan().ledger);
  auto range = training.epochs(position_.epoch, 1, {.stream = model_->stream(), .stop = stop});
  while (const pipeline::batch batch = range.next()) {
    failing.begin(batch.index());
    const std::uint64_t first_row = batch.index() * options_.stage.rows;
    const auto observe = [&](const std::string& field, std::uint64_t first) {
      stage.observe(inputs_of(batch, options_, field), batch.rows(), batch.valid_rows(), first,
                    weights_of(batch, options_, true));
    };
    observe(options_.x, first_row);
    if (!options_.x2.empty()) observe(options_.x2, first_row + train::progress::of_second_input);
  }
  check_rows(model_->progress(), options_, *model_, {training, "training set", position_.epoch});
  model_->reset();
  stage.set_normalisation(stage.observed());
  position_.begun = {};  // its rows were taken otherwise
  model_->discard();
}

epoch_progress trainer::train_epoch(pipeline::pipeline& training, std::stop_token stop, const observer& watch) {
  refuse_torn();
  check_batch_rows(training.plan(), options_.stage);
  position_.source = checked_source(training);
  check_place(position_, training.batches_per_epoch());
  resumed_ = false;
  const auto start = clock::now();
  const double rate = learning_rate(options_.stage.optimizer);
  const std::uint64_t steps_per_epoch = (training.batches_per_epoch() + options_.accumulate - 1) / options_.accumulate;
  epoch_progress done{
      .epoch = position_.epoch, .batches = position_.next_batch, .batches_per_epoch = training.batches_per_epoch()};
  const auto rate_at = [&](std::uint64_t batch) {
    const std::uint64_t step = position_.epoch * steps_per_epoch + batch / options_.accumulate;
    const double now = rate * factor(options_.schedule, step, steps_per_epoch);
    if (!std::isfinite(now))  // a factor above 1 may grow beyond all bounds, and the weights with it
      throw std::invalid_argument(fmt::format("the schedule gives step {} a learning rate of {}", step, now));
    return now;
  };
  if (position_.next_batch > 0) done.learning_rate = rate_at(position_.next_batch - 1);  // perhaps none comes after it
  std::uint64_t valid_rows = 0;
  const rows_of_pass rows{training, "training set", position_.epoch};
  train::progress before, latest;
  const auto note = [&](const train::progress& p) {
    check_rows(p, options_, *model_, rows);
    latest = p;
    done.training = p.at_step, done.steps = p.steps, done.skipped = p.skipped;
    done.seconds = seconds_since(start);
  };

  pass_errors failing(training, "training step", {position_.epoch, position_.next_batch + position_.begun.batches});
  try {
    model_->reset(position_.training);
    if (position_.begun.batches > 0) model_->go_on(position_.begun);
    before = model_->progress();
  } catch (...) {  // what the device holds is not of this epoch
    failing.rethrow();
  }
  monitor_.streams(training.plan().ledger);
  std::uint64_t in_step = std::exchange(position_.begun, {}).batches;
  const auto take_steps = [&] {
    const std::uint64_t first = position_.next_batch + in_step;
    auto range = training.epochs(position_.epoch, 1, {.stream = model_->stream(), .stop = stop, .first_batch = first});
    std::uint64_t steps = 0;
    while (const pipeline::batch batch = range.next()) {
      const std::uint64_t step = position_.epoch * steps_per_epoch + batch.index() / options_.accumulate;
      const bool ends = in_step + 1 == options_.accumulate || batch.index() + 1 == done.batches_per_epoch;
      done.learning_rate = rate_at(batch.index());
      failing.begin(batch.index(), step);
      train::step(*model_, batch,
                  {.learning_rate = done.learning_rate,
                   .begins = in_step == 0,
                   .ends = ends,
                   .first_row = batch.index() * options_.stage.rows},
                  failing);
      monitor_.batch(batch.rows());
      valid_rows += batch.valid_rows();
      in_step = ends ? 0 : in_step + 1;
      if (!ends) continue;
      done.batches = position_.next_batch = batch.index() + 1;
      done.exact = options_.report_every != 0 && (step + 1) % options_.report_every == 0;
      if (++steps % options_.check_every == 0 || done.exact) {
        note(done.exact ? model_->progress() : model_->latest_progress());
        if (watch) failing.of_caller([&] { watch(done); });
      }
      if (stop.stop_requested()) break;
    }
  };
  bool stopped = false;
  try {
    try {
      take_steps();
    } catch (const pipeline::stopped&) {
      if (in_step > 0) position_.begun = model_->begun();
      stopped = true;
    }
    note(model_->progress());
    if (position_.next_batch == done.batches_per_epoch && model_->stage() != nullptr) {
      const std::uint64_t end = std::exchange(position_.next_batch, 0);  // an epoch that taught nothing is not done
      check_that_steps_count(before, latest, options_, rows);
      if (done.skipped == 0) check_that_rows_count(valid_rows, done.training, options_, rows);
      position_.next_batch = end;
    }
  } catch (...) {
    forget_step();
    failing.rethrow();
  }
  done.exact = false;
  position_.training = done.training;
  done.complete = !stopped && position_.next_batch == done.batches_per_epoch;
  if (done.complete)
    position_ = {.epoch = position_.epoch + 1,
                 .last = done.training,
                 .judged = position_.judged,
                 .judged_on = position_.judged_on,
                 .source = position_.source};
  if (watch) watch(done);
  return done;
}

/// Weights of which some are another run's are none of a model.
void trainer::refuse_torn() const {
  if (torn_)
    throw error(
        "a checkpoint could not be read to its end, and some of the weights are those of before; resume from one "
        "again");
}

/// The data and their order are those that the run began with.
std::string trainer::checked_source(const pipeline::pipeline& training) const {
  const std::string source = source_of(training, options_, model_->stage() == nullptr);
  const bool under_way = position_.next_batch != 0 || position_.begun.batches != 0;
  if ((resumed_ || under_way) && !position_.source.empty() && position_.source != source)
    throw error(
        fmt::format("the training set is {}, and this run began with {}; go on with the same files and rows in "
                    "the same order, or start afresh",
                    source, in_short(position_.source, 2000)));
  return source;
}

void trainer::check_source(const pipeline::pipeline& training) {
  std::string source = checked_source(training);
  if (position_.source.empty()) position_.source = std::move(source);
}

/// Of a step that ended with an error, and of those after a row at fault, which changed nothing: it is noticed some
/// steps later. A device that fails for good fails here too: the first error is what counts.
void trainer::forget_step() {
  try {
    position_.begun = {};
    model_->discard();
    const train::progress now = model_->progress();
    position_.training = now.at_step;
    if (const std::uint64_t row = first_fault(now); row != train::progress::no_row && model_->stage() != nullptr) {
      const std::uint64_t step = row / options_.stage.rows / options_.accumulate;
      position_.next_batch = std::min<std::uint64_t>(position_.next_batch, step * options_.accumulate);
    }
  } catch (const penstock::error&) {
  }
}

metrics trainer::evaluate(pipeline::pipeline& testing, std::stop_token stop) {
  refuse_torn();
  check_batch_rows(testing.plan(), options_.stage);
  const rows_of_pass rows{testing, "test set", 0};  // the first epoch of its own order: always the same
  pass_errors failing(testing, "evaluation", {rows.epoch, 0});
  try {
    const own_faults apart(*model_);
    return evaluate(testing, rows, stop, failing);
  } catch (...) {
    failing.rethrow();
  }
}

metrics trainer::evaluate(pipeline::pipeline& testing, const rows_of_pass& rows, std::stop_token stop,
                          pass_errors& failing) {
  model_->reset();
  monitor_.streams(testing.plan().ledger);
  auto range = testing.epochs(rows.epoch, 1, {.stream = model_->stream(), .stop = stop});
  std::uint64_t valid_rows = 0;
  while (const pipeline::batch batch = range.next()) {
    failing.begin(batch.index());
    train::step(*model_, batch, {.training = false, .first_row = batch.index() * options_.stage.rows}, failing);
    monitor_.batch(batch.rows());
    valid_rows += batch.valid_rows();
  }
  const train::progress p = model_->progress();
  train::stage* const stage = model_->stage();
  if (stage != nullptr) confusion_ = stage->confusion();
  model_->reset();
  check_rows(p, options_, *model_, rows);
  left_out_ = stage != nullptr ? train::left_out(p, options_, rows) : "";
  if (stage != nullptr && left_out_.empty()) check_that_rows_count(valid_rows, p.running, options_, rows);
  return p.running;
}

std::string trainer::judge_on(const pipeline::pipeline& testing) {
  trainer_options options = options_;
  if (testing.rows() > 0 && !options.stored_weight.empty() && !testing.place_of(options.stored_weight, 0))
    options.stored_weight.clear();  // a test set may lack it
  std::string here = source_of(testing, options, model_->stage() == nullptr);
  const std::string before = std::exchange(position_.judged_on, std::move(here));
  if (before != position_.judged_on) position_.judged_anew = true;
  if (position_.judged.epochs == 0 || before.empty() || before == position_.judged_on) return {};
  position_.judged = {};
  return fmt::format("the epochs before were judged on {}, and now it is {}: what they came to is forgotten",
                     in_short(before, 2000), position_.judged_on);
}

bool trainer::judge(const metrics& evaluated) {
  if (position_.epoch == 0) throw std::invalid_argument("there is no epoch to judge yet");
  return train::judge(options_.stop, position_.epoch - 1, evaluated, position_.judged);
}

class_labels labels_of(const std::filesystem::path& checkpoint) { return read_labels(checkpoint); }

void check_checkpoint(const std::filesystem::path& file, const trainer_options& options) { check_run(file, options); }

void trainer::save(const std::filesystem::path& file, fault_seam faults) {
  refuse_torn();
  save_checkpoint(file, *model_, options_, position_, std::move(faults));
}

std::string trainer::resume(const std::filesystem::path& file) {
  resumed_run there = load_checkpoint(file, *model_, options_, torn_);
  position_ = std::move(there.at);
  if (position_.begun.batches == 0) model_->discard();  // of what this trainer itself had begun
  resumed_ = true;
  return there.difference;
}

}  // namespace penstock::train
