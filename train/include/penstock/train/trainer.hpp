#pragma once

#include <penstock/fault.hpp>
#include <penstock/pipeline/pipeline.hpp>
#include <penstock/train/early_stopping.hpp>
#include <penstock/train/memory_use.hpp>
#include <penstock/train/own_model.hpp>
#include <penstock/train/schedule.hpp>
#include <penstock/train/stage.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace penstock::train {

class learner;        // private: what the loop sees of a model
class pass_errors;    // private: where a pass over batches failed
struct rows_of_pass;  // private

/// Where the source leaves damaged rows out (pipeline::damage_options), its mask is the rows' weights.
struct trainer_options {
  stage_options stage{};        ///< stage.rows: rows of the pipelines' batches; those of others are refused, with both
  std::size_t accumulate = 1;   ///< batches of one step; the last step of an epoch takes what is left
  train::schedule schedule{};   ///< of the optimizer's learning rate
  std::string x = "x";          ///< the field of the inputs, of type stage.compute
  std::string x2{};             ///< the field of the second input, where the model has two
  std::string label = "label";  ///< the field of the targets: int32, or values of type stage.compute
  std::string weight{};         ///< the field of the rows' weights, of type stage.compute; empty: all 1. A test set
                                ///< may lack it
  std::string stored_weight{};  ///< the stored field that a transform makes `weight` of, where one does: a run goes on
                                ///< only where it has the same place; it must be there. Empty: `weight`, if stored
  std::vector<std::string> class_names{};  ///< kept in checkpoints; empty: classes are numbers
  early_stopping stop{};                   ///< what judge() goes by
  std::uint64_t check_every = 32;          ///< steps between looks at the device, which do not wait for it
  std::uint64_t report_every = 0;  ///< steps of the run between exact reports, which wait for the device; 0: none
};

/// How far an epoch is.
struct epoch_progress {
  std::uint64_t epoch = 0;
  std::uint64_t batches = 0;  ///< of the steps done; of batches_per_epoch
  std::uint64_t batches_per_epoch = 0;
  metrics training{};       ///< of the steps done; within an epoch it may lag some steps behind
  std::uint64_t steps = 0;  ///< since the first epoch
  std::uint64_t skipped = 0;
  double seconds = 0;        ///< in this call
  double learning_rate = 0;  ///< of the last step
  bool exact = false;        ///< trainer_options::report_every asked for it: `training` and `steps` are up to date
  bool complete = false;     ///< false where the epoch was stopped
};

/// Where training goes on.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t next_batch = 0;  ///< the first one of the step to be made, or that has begun
  begun_step begun{};            ///< how far that step is, where it was stopped
  metrics training{};            ///< of the epoch under way, up to that step
  metrics last{};                ///< training metrics of the epoch before it
  judged_epochs judged{};        ///< by judge()
  std::string judged_on{};       ///< the rows that they were judged on, as judge_on() was told
  std::string source{};          ///< the training set and its order: words, fingerprints; empty: not known yet
  bool judged_anew = false;      ///< since the last epoch, resume() or judge_on() has found that epochs are judged by
                                 ///< another quantity, or on other rows, than before; no part of checkpoints
};

/// How a row's class follows from the outputs of a model.
enum class decision : std::uint8_t {
  none,      ///< of values: there are no classes
  largest,   ///< the place of the largest output, the first one of equals
  yes_or_no  ///< for each output: yes above 0
};

/// What a checkpoint's classes are called.
struct class_labels {
  std::vector<std::string> names{};  ///< trainer_options::class_names; empty: numbers
  std::int32_t first = 0;            ///< the number of the first class
  train::decision decision = decision::largest;
};
/// Throws io::error, train::error for what is no checkpoint.
class_labels labels_of(const std::filesystem::path& checkpoint);

/// What trainer::resume() refuses, but for the file's arrays, without memory for a run: a file that is not there or no
/// checkpoint, and one of another model, optimizer, seed or step size than `options`, of a stage of Penstock's. Throws
/// io::error, train::error.
void check_checkpoint(const std::filesystem::path& file, const trainer_options& options);

/// The training loop: takes batches of pipelines through a stage, or a model of yours, epoch by epoch, and keeps its
/// place. What it meets (a loss that is not finite, a target that the loss does not take, a pipeline's error) ends it
/// with an exception; a checkpoint of its last whole step can be saved then, unless an update failed midway, which
/// save() says, or made weights that are no numbers, which non_finite describes. A pipeline whose batches are not of
/// options().stage.rows rows is refused with std::invalid_argument. Not thread-safe.
///
/// Whatever else fails in a pass, a device or a model of yours, is told as pipeline::error with stage ("training step",
/// "evaluation", "normalisation"), epoch and rows of the batch at work, where these come from, and the cause: your
/// model's own exception, say. Of a GPU, which tells late, the sentence says "at or before". pipeline::error,
/// pipeline::stopped and train::error pass as they are, and so does what an observer throws.
class trainer {
 public:
  using observer = std::function<void(const epoch_progress&)>;

  /// `memory` holds the items of plan(device, options.stage). Throws std::invalid_argument also for options of which a
  /// checkpoint could not be read back: words of a run are 15 MiB at most there, names and weights of classes apart.
  trainer(gpu::stream_ref stream, trainer_options options, std::shared_ptr<gpu::memory> memory);
  /// A model of yours in the same loop, which binds it now; `memory` holds the items of plan(device, model). Of
  /// options.stage, only the rows and the optimizer's learning rate are looked at, and of the fields none: a loss that
  /// is not finite ends the run, whatever options.stage.non_finite is. Throws std::invalid_argument for an empty name,
  /// and for state and names that a checkpoint cannot hold.
  trainer(gpu::stream_ref stream, trainer_options options, std::shared_ptr<gpu::memory> memory, model_functions model);
  trainer(trainer&&) noexcept;
  trainer& operator=(trainer&&) noexcept;
  ~trainer();

  /// Takes mean and deviation of the inputs from one pass over the training set. Throws pipeline::stopped on request,
  /// and std::logic_error where the model is yours: it takes its inputs as they are. A step that has begun is made
  /// anew.
  void normalise_from(pipeline::pipeline& training, std::stop_token stop = {});
  /// Trains until the epoch's end, from where it stands. A stop is obeyed between batches, also between those of a
  /// step, whose sums of gradients are kept: the result is not complete then, and the next call goes on. Throws
  /// train::error with the row at fault, and train::error that names both sides where a resumed run, or an epoch under
  /// way, is given other data (files by their names, which folder they are in aside; datasets and parts of them; the
  /// rows that take part, and what they are drawn by) or another order of its rows, and where a weight of 0 masks every
  /// row. What files hold is not compared.
  epoch_progress train_epoch(pipeline::pipeline& training, std::stop_token stop = {}, const observer& watch = {});
  /// Refuses other data as train_epoch() does, before anything is made of them: for what is done between resume() and
  /// the first epoch. A run that has no data yet begins with these. Throws train::error, and std::invalid_argument
  /// where options().stored_weight is not there.
  void check_source(const pipeline::pipeline& training);
  /// Loss and other metrics over one epoch of a pipeline, without gradients. With non_finite::skip, rows whose loss is
  /// not finite are left out of it, and are counted among `rows` with the prediction that they have: see left_out().
  metrics evaluate(pipeline::pipeline& testing, std::stop_token stop = {});

  /// Takes what an evaluation after the last whole epoch gave into account for options().stop. True where that epoch is
  /// the best so far. Throws std::invalid_argument before the first epoch. The state is a part of checkpoints; where
  /// position().judged.epochs is below position().epoch, the last epoch is yet to be judged.
  bool judge(const metrics& evaluated);
  /// Says which rows judge() is given evaluations of. Where the epochs before were judged on others, they are
  /// forgotten: gives that in a sentence; empty: nothing was. To be called after resume(), and before is_over() is
  /// asked.
  std::string judge_on(const pipeline::pipeline& testing);
  /// Nothing has become better for options().stop.patience epochs.
  bool is_over() const noexcept { return train::is_over(options_.stop, position_.judged); }

  /// Writes weights, moments, statistics and place to one HDF5 file, which is there whole or not at all. Weights are
  /// plain datasets: /model/layer0/weight ... So are the sums of gradients of a step that has begun, which no other
  /// checkpoint holds: /gradients/layer0/weight ... Throws io::error, and train::error for what could not be read back,
  /// as the names of a training set that take megabytes: the file that is there stays.
  void save(const std::filesystem::path& file, fault_seam faults = {});
  /// Goes on from a checkpoint as if it had never stopped. Throws io::error, and train::error that names both sides
  /// where the checkpoint is of another model, optimizer, seed or step size, or is damaged (it carries checksums);
  /// nothing is changed then, unless another file took its place while it was read, or the device failed:
  /// train_epoch(), evaluate() and save() are refused from there until a checkpoint was read whole. Gives why it will
  /// not have the bits of the run that was not stopped, in a sentence: another device or another version of its
  /// library, with other algorithms, or a workspace that is too small for them; another precision, learning rate (with
  /// its schedule), betas, epsilon, weight decay, clipping, or other batches of a step; within an epoch, another
  /// options().stage.top_k, so that the epoch's count mixes two; a step that has begun and is made anew, since its
  /// batches or its precision were others, or the model, yours, shows no gradients, or a row of it was at fault in a
  /// run that skips no such steps; or epochs that were judged by another quantity than options().stop.watched, which
  /// are forgotten. Empty: it will.
  std::string resume(const std::filesystem::path& file);

  const trainer_options& options() const noexcept { return options_; }
  const train::position& position() const noexcept { return position_; }
  /// Of the last evaluate(): names the first row whose loss was left out, in a sentence. Empty: none was.
  const std::string& left_out() const noexcept { return left_out_; }
  /// Of the last evaluate(); empty unless options().stage.confusion.
  const confusion_matrix& confusion() const noexcept { return confusion_; }
  /// Planned, used and peak bytes by category, now: between calls, or from an observer.
  memory_snapshot memory() const { return monitor_.now(); }
  /// Throws std::logic_error where the model is yours.
  train::stage& stage();

 private:
  std::string checked_source(const pipeline::pipeline& training) const;
  void forget_step();
  void refuse_torn() const;
  void observe_inputs(train::stage& stage, pipeline::pipeline& training, std::stop_token stop, pass_errors& failing);
  metrics evaluate(pipeline::pipeline& testing, const rows_of_pass& rows, std::stop_token stop, pass_errors& failing);

  trainer_options options_;
  std::unique_ptr<learner> model_;
  memory_monitor monitor_;
  train::position position_;
  bool resumed_ = false;  ///< and no epoch has begun since
  bool torn_ = false;     ///< resume() ended midway
  confusion_matrix confusion_;
  std::string left_out_;
};

}  // namespace penstock::train
