#pragma once

#include "progress_line.hpp"
#include "session.hpp"
#include "training_log.hpp"

#include <penstock/error.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace examples {

/// A planned run, carried out: epochs from where the trainer stands, with their results and checkpoints.
class training_program {
 public:
  training_program(const train_options& o, const training_data& data, planned_session session);

  /// Trains to the last epoch, until nothing becomes better, or until a stop is asked for. A checkpoint is kept on the
  /// way and at the end; also where an error ends it that leaves the model as its last whole step made it, as damaged
  /// rows do: what is thrown says so then.
  void run(std::stop_token stop);
  /// Shows and writes what came of it.
  void report();

 private:
  bool is_done() const;
  bool lacks_evaluation() const;
  bool was_interrupted() const;
  void show_damaged_of_testing(const penstock::pipeline::pipeline_report& report);
  void prepare(std::stop_token stop);
  void begin(std::stop_token stop);
  void go_on(std::stop_token stop);
  void keep_initial(std::stop_token stop);
  void one_epoch(std::stop_token stop);
  void finish_epoch(epoch_result result, std::stop_token stop);
  /// On the test set, for last_test_. Prints what its loss leaves out.
  void evaluate(std::stop_token stop);
  /// Warns of columns of inputs, and of targets that are values, which arrive rounded.
  void warn_of_rounding();
  double last_rate() const;
  log_position place_in_log(bool evaluated) const;
  void save(const char* why);
  void keep_after(const penstock::error& error);
  void show_confusion();
  void show_best();

  const train_options& options_;
  penstock::gpu::stream stream_;
  std::vector<penstock::io::location> x_, x2_, y_;
  std::size_t row_bytes_;
  nlohmann::json results_;
  result_form form_;
  penstock::train::planned_run run_;
  penstock::train::trainer trainer_;
  progress_line line_;
  std::optional<training_log> log_;
  nlohmann::json epochs_ = nlohmann::json::array();
  std::optional<penstock::train::metrics> last_test_;
  bool prepared_ = false;                             ///< the trainer stands where a checkpoint may be taken
  bool kept_ = false;                                 ///< the checkpoint holds all that the trainer has come to
  std::pair<std::uint64_t, std::uint64_t> begun_at_;  ///< epoch and batch: what was done before is kept, or nothing was
};

}  // namespace examples
