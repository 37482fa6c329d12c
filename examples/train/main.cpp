// Trains a multilayer perceptron on HDF5 datasets of any size within a fixed budget of memory.

#include "../common/program.hpp"
#include "../common/signals.hpp"
#include "progress_line.hpp"
#include "results.hpp"
#include "session.hpp"

#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/error.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace ps = penstock;

/// Bytes of a row as the files store it.
std::size_t stored_row_bytes(const examples::labelled_rows& rows) {
  return ps::io::row_reader(rows.x).row_bytes() + ps::io::row_reader(rows.y).row_bytes();
}

/// The files that the data are read from.
std::vector<std::filesystem::path> inputs_of(const examples::training_data& data) {
  std::vector<std::filesystem::path> files;
  const auto add = [&](const examples::labelled_rows& rows) {
    for (const auto& part : rows.x) files.push_back(part.file);
    for (const auto& part : rows.y) files.push_back(part.file);
  };
  add(data.training);
  if (data.testing) add(*data.testing);
  return files;
}

/// The run itself: epochs from where the trainer stands.
class training_program {
 public:
  training_program(const examples::train_options& o, const examples::training_data& data,
                   examples::planned_session session)
      : options_(o),
        stream_(session.device),
        row_bytes_(stored_row_bytes(data.training)),
        results_(examples::to_json(session)),
        run_(ps::train::build(session.plan, std::move(session.training), std::move(session.testing))),
        trainer_(stream_, session.trainer, run_.memory),
        line_(o.epochs, run_.training.rows(), row_bytes_) {}

  /// Trains to the last epoch, or until a stop is asked for. A checkpoint is kept on the way and at the end.
  void run(std::stop_token stop) {
    try {
      prepare(stop);
      while (!stop.stop_requested() && trainer_.position().epoch < options_.epochs) one_epoch(stop);
    } catch (const ps::pipeline::stopped&) {
      // Within a pass without gradients: there is nothing to lose.
    }
    if (!stop.stop_requested()) return;
    if (prepared_) return save("stopped");
    fmt::print("stopped before the first step; there is nothing to keep\n");
  }

  void report() {
    std::ostringstream text;
    text << run_.training.report();
    fmt::print("\n{}", text.str());
    const bool tested = last_test_.has_value();
    const char* const quality = of_values() ? "RMSE" : "accuracy";
    const double reached = !tested ? 0 : of_values() ? last_test_->rmse() : last_test_->accuracy();
    if (tested) results_[of_values() ? "test_rmse" : "test_accuracy"] = reached;
    results_["epochs"] = epochs_;
    if (!options_.json.empty()) examples::write_json(options_.json, results_);
    if (tested) fmt::print("test {} {:.4f}\n", quality, reached);
  }

 private:
  bool of_values() const { return trainer_.options().stage.targets == ps::train::target::values; }

  void prepare(std::stop_token stop) {
    if (options_.resume) {
      trainer_.resume(options_.checkpoint);
      fmt::print("resumed from {}: epoch {}, batch {}\n", options_.checkpoint, trainer_.position().epoch + 1,
                 trainer_.position().next_batch);
      prepared_ = true;
      if (trainer_.position().epoch >= options_.epochs && run_.testing)
        last_test_ = trainer_.evaluate(*run_.testing, stop);
    } else if (options_.normalise) {
      trainer_.normalise_from(run_.training, stop);
    }
    prepared_ = true;
    std::fflush(stdout);
  }

  void one_epoch(std::stop_token stop) {
    const std::uint64_t first_batch = trainer_.position().next_batch;
    examples::epoch_result result;
    result.of_values = of_values();
    result.training =
        trainer_.train_epoch(run_.training, stop, [&](const ps::train::epoch_progress& at) { line_.show(at); });
    line_.clear();
    if (!result.training.complete) return;
    const double rows = static_cast<double>(run_.training.rows() - first_batch * trainer_.options().stage.rows);
    result.rows_per_second = rows / result.training.seconds;
    result.gigabytes_per_second = result.rows_per_second * static_cast<double>(row_bytes_) / 1e9;
    if (run_.testing) last_test_ = result.testing = trainer_.evaluate(*run_.testing, stop);
    examples::print_epoch(result, options_.epochs);
    epochs_.push_back(examples::to_json(result));
    save(nullptr);
  }

  void save(const char* why) {
    const auto& at = trainer_.position();
    if (why != nullptr) fmt::print("{} at epoch {}, batch {}", why, at.epoch + 1, at.next_batch);
    if (!options_.checkpoint.empty()) trainer_.save(options_.checkpoint);
    if (why != nullptr)
      fmt::print("{}\n", options_.checkpoint.empty()
                             ? "; without --checkpoint, nothing is kept"
                             : "; go on with --checkpoint " + options_.checkpoint + " --resume");
  }

  const examples::train_options& options_;
  ps::gpu::stream stream_;
  std::size_t row_bytes_;
  nlohmann::json results_;
  ps::train::planned_run run_;
  ps::train::trainer trainer_;
  examples::progress_line line_;
  nlohmann::json epochs_ = nlohmann::json::array();
  std::optional<ps::train::metrics> last_test_;
  bool prepared_ = false;  ///< the trainer stands where a checkpoint may be taken
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a multilayer perceptron on HDF5 datasets of any size within a fixed budget of memory: all of it is "
      "planned, shown and allocated before the first step.",
      "penstock-train");
  examples::train_options o;
  examples::add_train_options(app, o);
  int stopped_by = 0;
  const int code = examples::run_program(app, argc, argv, [&] {
    const examples::stop_on_signal signals;
    const auto data = examples::find_data(o);
    examples::check_output("--checkpoint", o.checkpoint, inputs_of(data));
    examples::check_output("--json", o.json, inputs_of(data));
    if (!o.json.empty() && o.json == o.checkpoint)
      throw std::invalid_argument(fmt::format("--json {}: it is the checkpoint's file; name another", o.json));
    o.order = examples::order_of(data.training, o);
    auto session = examples::plan_session(o, data);
    examples::print_plan(session, o.budget);
    if (o.plan_only) return;
    training_program program(o, data, std::move(session));
    program.run(signals.token());
    stopped_by = signals.signal();
    program.report();
  });
  return code == 0 && stopped_by != 0 ? 128 + stopped_by : code;
}
