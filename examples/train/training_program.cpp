#include "training_program.hpp"

#include "../common/gnuplot.hpp"
#include "../common/program.hpp"
#include "confusion.hpp"
#include "plot.hpp"
#include "rounding.hpp"

#include <penstock/gpu/error.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/error.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/optimizer.hpp>
#include <penstock/train/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <sstream>
#include <utility>

namespace examples {
namespace {

namespace io = penstock::io;
namespace train = penstock::train;

/// "epoch 1, batch 8 (2 of the 3 batches of a step)".
std::string place_of(const train::position& at, const train::trainer_options& how) {
  const std::uint64_t begun = at.begun.batches;
  return fmt::format("epoch {}, batch {}{}", at.epoch + 1, at.next_batch + begun,
                     begun == 0 ? "" : fmt::format(" ({} of the {} batches of a step)", begun, how.accumulate));
}

bool is_of_device(const std::exception_ptr& cause) {
  if (!cause) return false;
  try {
    std::rethrow_exception(cause);
  } catch (const penstock::gpu::error&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Whether an error left weights and moments as the last whole step made them, and these are worth a checkpoint: one of
/// rows that cannot be read or used. After a loss or gradients that are not finite (though inputs were) they may be
/// those of a run that diverges, which should not take the place of older ones; of a device that failed nothing is
/// known; and after results that could not be written, a log would lack a line where a run goes on.
bool leaves_model_whole(const penstock::error& error, train::trainer& trainer) {
  if (const auto* const of_rows = dynamic_cast<const train::error*>(&error)) return of_rows->where().of_data;
  const auto* const of_pass = dynamic_cast<const penstock::pipeline::error*>(&error);
  if (of_pass == nullptr || is_of_device(of_pass->cause())) return false;
  try {  // a row that could not be read may come before what the rows before it have done is looked at
    return leaves_model_whole(trainer.stage().progress());
  } catch (const penstock::error&) {
    return false;
  }
}

/// Bytes of a row as the files store it.
std::size_t stored_row_bytes(const labelled_rows& rows) {
  std::size_t bytes = io::row_reader(rows.x).row_bytes() + io::row_reader(rows.y).row_bytes();
  if (!rows.x2.empty()) bytes += io::row_reader(rows.x2).row_bytes();
  return bytes;
}

}  // namespace

training_program::training_program(const train_options& o, const training_data& data, planned_session session)
    : options_(o),
      stream_(session.device),
      x_(data.training.x),
      x2_(data.training.x2),
      y_(data.training.y),
      row_bytes_(stored_row_bytes(data.training)),
      results_(to_json(session)),
      form_(form_of(session, o)),
      run_(train::build(session.plan, std::move(session.training), std::move(session.testing))),
      trainer_(stream_, session.trainer, run_.memory),
      line_(o.epochs, run_.training.rows(), row_bytes_) {}

void training_program::run(std::stop_token stop) {
  try {
    prepare(stop);
    while (!stop.stop_requested() && !is_done()) one_epoch(stop);
  } catch (const penstock::pipeline::stopped&) {
    // Within a pass without gradients: there is nothing to lose.
  } catch (const penstock::error& e) {
    keep_after(e);
    throw;
  }
  if (!stop.stop_requested()) return;
  if (prepared_) return save("stopped");
  fmt::print("stopped before the first step; there is nothing to keep\n");
}

bool training_program::is_done() const { return trainer_.position().epoch >= options_.epochs || trainer_.is_over(); }

/// Whether the last epoch is still to be evaluated: the run was stopped before it was, or had no rows for that.
bool training_program::lacks_evaluation() const {
  const train::position& at = trainer_.position();
  return run_.testing && at.next_batch == 0 && at.judged.epochs < at.epoch && at.last.rows > 0;
}

/// A run that ended between its last epoch and what follows on it, and is completed. Where epochs are judged by
/// something else than before, it had its end.
bool training_program::was_interrupted() const {
  const train::position& at = trainer_.position();
  return at.epoch == options_.epochs && !at.judged_anew;
}

void training_program::prepare(std::stop_token stop) {
  if (options_.resume) return go_on(stop);
  begin(stop);
}

void training_program::begin(std::stop_token stop) {
  trainer_.check_source(run_.training);
  if (run_.testing) trainer_.judge_on(*run_.testing);
  if (options_.normalise) trainer_.normalise_from(run_.training, stop);
  warn_of_rounding();
  prepared_ = true;
  log_.emplace(options_.log, form_, run_.testing.has_value());
  std::fflush(stdout);
  if (is_done()) keep_initial(stop);
}

/// With --epochs 0.
void training_program::keep_initial(std::stop_token stop) {
  fmt::print("no epoch is asked for, and nothing is trained{}\n",
             options_.checkpoint.empty() ? "" : ": the initial weights are kept in " + options_.checkpoint);
  save(nullptr);
  if (run_.testing) evaluate(stop);
}

/// Whatever is refused is refused before anything is judged or written. A run that has nothing to train looks at its
/// checkpoint, and writes neither that nor the best one nor the log.
void training_program::go_on(std::stop_token stop) {
  const std::string difference = trainer_.resume(options_.checkpoint);
  kept_ = true;
  const train::position& at = trainer_.position();
  fmt::print("resumed from {}: {}\n", options_.checkpoint, place_of(at, trainer_.options()));
  fmt::print(
      "the inputs' means and deviations are the checkpoint's; learning rate, schedule, clipping and damaged rows go by "
      "this command line\n");
  if (!difference.empty()) fmt::print("not to the bits of a run without a stop: {}\n", difference);
  const std::string forgotten = run_.testing ? trainer_.judge_on(*run_.testing) : "";
  const bool looks = is_done() && !(lacks_evaluation() && was_interrupted()), late = !looks && lacks_evaluation();
  if (!looks) trainer_.check_source(run_.training);
  prepared_ = true;
  log_.emplace(options_.log, form_, run_.testing.has_value(), place_in_log(!late), looks);
  if (looks) {
    fmt::print("no epoch is left to train{}\n",
               run_.testing ? ": checkpoints and log stay as they are"
                            : ", and there are no rows to evaluate on: see --test-x and --validation");
    if (run_.testing) evaluate(stop);
    return;
  }
  if (!forgotten.empty()) fmt::print("{}\n", forgotten);
  if (!late) return;
  const train::progress now = trainer_.stage().progress();
  finish_epoch({.training = {.epoch = at.epoch - 1,
                             .batches = run_.training.batches_per_epoch(),
                             .training = at.last,
                             .steps = now.steps,
                             .skipped = now.skipped,
                             .learning_rate = last_rate(),
                             .complete = true}},
               stop);
}

void training_program::warn_of_rounding() {
  const auto warn = [](const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) fmt::print(stderr, "penstock-train: warning: {}\n", sentence);
  };
  for (const auto* x : {&x_, &x2_})
    warn(options_.normalise ? rounded_columns(*x, trainer_.stage().normalisation()) : rounded_columns(*x));
  const train::stage_options& stage = trainer_.options().stage;
  if (train::classes_of(stage.loss, stage.model.outputs) == 0) warn(rounded_columns(y_));
}

void training_program::evaluate(std::stop_token stop) {
  last_test_ = trainer_.evaluate(*run_.testing, stop);
  results_[form_.testing_name + "_left_out"] = trainer_.left_out();
  if (!trainer_.left_out().empty()) fmt::print("{}\n", trainer_.left_out());
}

/// Of the step before a position between two epochs.
double training_program::last_rate() const {
  const train::trainer_options& how = trainer_.options();
  const std::uint64_t steps = (run_.training.batches_per_epoch() + how.accumulate - 1) / how.accumulate;
  return train::learning_rate(how.stage.optimizer) *
         train::factor(how.schedule, trainer_.position().epoch * steps - 1, steps);
}

/// Where the trainer stands. `evaluated`: so is its last whole epoch.
log_position training_program::place_in_log(bool evaluated) const {
  const train::position& at = trainer_.position();
  return {.epochs = at.epoch - (evaluated ? 0 : 1),
          .under_way = at.epoch,
          .step = steps_in(at.next_batch, trainer_.options().accumulate)};
}

void training_program::one_epoch(std::stop_token stop) {
  kept_ = false;
  begun_at_ = {trainer_.position().epoch, trainer_.position().next_batch};
  const std::uint64_t first_batch = trainer_.position().next_batch + trainer_.position().begun.batches;
  line_.begin_epoch(first_batch);
  epoch_result result;
  result.training = trainer_.train_epoch(run_.training, stop, [&](const train::epoch_progress& at) {
    if (at.exact) log_->add_steps(at);
    line_.show(at, [&] { return used_of(trainer_.memory(), options_.budget); });
  });
  line_.clear();
  if (!result.training.complete) return;
  // The last batch of an epoch may end beyond its rows.
  const std::uint64_t all = run_.training.rows();
  const double rows = static_cast<double>(all - std::min(all, first_batch * trainer_.options().stage.rows));
  result.rows_per_second = rows / result.training.seconds;
  result.gigabytes_per_second = result.rows_per_second * static_cast<double>(row_bytes_) / 1e9;
  finish_epoch(std::move(result), stop);
}

/// The checkpoint comes last: a run that ends before it was written does this again, and the log's line with it.
void training_program::finish_epoch(epoch_result result, std::stop_token stop) {
  result.form = form_;
  bool best = false;
  if (run_.testing) {
    evaluate(stop);
    result.testing = last_test_;
    best = trainer_.judge(*last_test_);
    kept_ = false;
  }
  result.device_bytes = trainer_.memory().used(penstock::gpu::memory_kind::device);
  print_epoch(result, options_.epochs);
  epochs_.push_back(to_json(result));
  log_->add(result);
  if (best && !options_.best_checkpoint.empty()) trainer_.save(options_.best_checkpoint);
  save(nullptr);
}

void training_program::save(const char* why) {
  if (why != nullptr) fmt::print("{} at {}", why, place_of(trainer_.position(), trainer_.options()));
  if (!options_.checkpoint.empty() && !kept_) trainer_.save(options_.checkpoint);
  kept_ = true;
  if (why != nullptr)
    fmt::print("{}\n", options_.checkpoint.empty() ? "; without --checkpoint, nothing is kept"
                                                   : "; go on with --checkpoint " + options_.checkpoint + " --resume");
}

/// Throws where there was something to keep, and that went well: the error, and what is kept.
void training_program::keep_after(const penstock::error& error) {
  const train::position& at = trainer_.position();
  if (!prepared_ || options_.checkpoint.empty() || kept_ || std::pair(at.epoch, at.next_batch) == begun_at_ ||
      !leaves_model_whole(error, trainer_))
    return;
  try {
    trainer_.save(options_.checkpoint);
  } catch (const std::exception&) {  // the first error says more
    return;
  }
  kept_ = true;
  throw penstock::error(
      fmt::format("{}; what was trained before, up to {}, is kept: go on with --checkpoint {} --resume", error.what(),
                  place_of(at, trainer_.options()), options_.checkpoint));
}

void training_program::show_best() {
  const train::judged_epochs& judged = trainer_.position().judged;
  if (judged.epochs == 0) return;
  const std::string watched(train::name_of(options_.stop.watched));
  results_["best"] = {{"epoch", judged.best + 1}, {watched, judged.best_value}};
  results_["stopped_early"] = trainer_.is_over();
  if (trainer_.is_over())
    fmt::print("ended early: no better {} {} for {} epochs\n", form_.testing_name, watched, judged.waited);
  if (trainer_.is_over() || !options_.best_checkpoint.empty())
    fmt::print("best epoch: {}, {} {} {:.4f}{}\n", judged.best + 1, form_.testing_name, watched, judged.best_value,
               options_.best_checkpoint.empty() ? "" : ", kept in " + options_.best_checkpoint);
}

void training_program::show_confusion() {
  if (!options_.confusion) return;
  const auto names = names_of_classes(trainer_.options());
  fmt::print("\n{}\n", to_text(trainer_.confusion(), names));
  results_["confusion"] = to_json(trainer_.confusion(), names);
}

/// The training rows' are in the report.
void training_program::show_damaged_of_testing(const penstock::pipeline::pipeline_report& report) {
  results_[form_.testing_name + "_damaged_rows"] = report.damaged_row_count;
  if (report.damaged_row_count == 0) return;
  fmt::print("damaged rows of the {} set, not evaluated on: {}\n", form_.testing_name, report.damaged_row_count);
  for (const auto& part : report.damaged) fmt::print("  {}\n", part.why);
}

void training_program::report() {
  std::ostringstream text;
  const auto report = run_.training.report();
  text << report;
  fmt::print("\n{}", text.str());
  results_["damaged_rows"] = report.damaged_row_count;
  if (run_.testing) show_damaged_of_testing(run_.testing->report());
  show_best();
  if (last_test_) {
    add_metrics(results_, form_.testing_name, *last_test_, form_);
    show_confusion();
  }
  results_["memory"] = to_json(trainer_.memory());
  add_outside_budget(results_);
  results_["epochs"] = epochs_;
  if (!options_.trace.empty() && run_.training.write_trace(options_.trace) > 0)
    fmt::print("the trace has no room for all epochs: it ends before the last\n");
  if (!options_.json.empty()) write_json(options_.json, results_);
  if (!options_.plot.empty() && log_ && !log_->epochs().empty())
    draw(options_.plot, plot_of(log_->epochs(), form_, train::to_text(trainer_.options().stage.model)));
  if (last_test_) fmt::print("{} {}\n", form_.testing_name, quality_of(*last_test_, form_));
}

}  // namespace examples
