#pragma once

#include <penstock/bytes.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/damage.hpp>
#include <penstock/pipeline/order.hpp>
#include <penstock/train/levers.hpp>
#include <penstock/train/optimizer.hpp>

#include <CLI/CLI.hpp>

#include <penstock/train/early_stopping.hpp>
#include <penstock/train/loss.hpp>
#include <penstock/train/model.hpp>
#include <penstock/train/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// What the command line of penstock-train says.
struct train_options {
  std::vector<std::string> files;
  std::string x2, test_x2;              ///< the second input; empty: there is one
  std::string x, y, test_x, test_y;     ///< paths of datasets; empty: found in the file
  std::string weights, test_weights;    ///< of the rows; empty: all 1
  double validation = 0;                ///< share of the training rows that is kept for evaluation
  std::string validation_group;         ///< dataset: rows with the same value are kept together; empty: each by itself
  std::size_t classes = 0;              ///< 0: one more than the largest label
  int labels_from = 0;                  ///< number of the first class
  bool one_hot = false;                 ///< a row of y holds a value for each class
  std::vector<double> class_weights{};  ///< empty: all 1, or
  bool balanced_classes = false;        ///< each class as if there were as many of it as of every other
  penstock::pipeline::damage_options damaged{};  ///< what becomes of damaged rows, of every set

  std::vector<std::size_t> hidden{512, 256};
  std::size_t batch_rows = 256;
  std::size_t accumulate = 1;
  std::uint64_t epochs = 10;
  std::string optimizer = "adamw";
  std::optional<double> learning_rate, weight_decay, momentum;  ///< absent: the optimizer's defaults
  std::optional<double> beta1, beta2, epsilon;                  ///< the same, for adamw
  std::string schedule = "constant";
  std::optional<double> final_factor, step_factor;  ///< absent: the schedule's defaults
  std::optional<std::uint64_t> step_epochs;         ///< the same
  std::uint64_t warmup_steps = 0;
  std::string activation = "relu";
  bool layer_norm = false;
  double dropout = 0;
  std::string loss = "softmax";
  double label_smoothing = 0;
  double positive_weight = 1;
  double margin = 0;
  std::optional<double> delta;  ///< absent: the loss's default
  std::string towers = "shared";
  std::string join = "difference";
  std::size_t embedding = 0;  ///< 0: 1 to rank by a difference, else 64
  std::vector<std::size_t> head{};
  std::size_t top_k = 0;   ///< 0: not shown
  bool confusion = false;  ///< shown at the end
  std::string precision = "float32";
  std::size_t recompute = 0;
  std::size_t floor_rows = penstock::train::default_floor_rows;
  std::vector<std::string> offload{};  ///< "optimizer", "activations"
  double clip_norm = 0;
  bool nesterov = false;
  penstock::pipeline::shuffled order{.seed = 1};
  bool normalise = true;
  bool skip_non_finite = false;

  std::string device = "auto";
  penstock::gpu::budget budget;
  std::size_t threads = 0;

  std::string checkpoint;
  bool keep_best = false;
  std::string best_checkpoint;  ///< beside the checkpoint where keep_best; empty: none is kept
  penstock::train::early_stopping stop;
  bool resume = false;
  bool plan_only = false;
  std::string json;
  std::string log;
  std::uint64_t log_steps = 0;  ///< 0: epochs alone
  std::string plot;
  std::string trace;       ///< for what the training rows' blocks went through; empty: none is kept
  bool calibrate = false;  ///< how they travel is chosen by trying
};

/// Adds the options to the command line that is parsed into `o`.
void add_train_options(CLI::App& app, train_options& o);

/// The loss that the options name: of classes, or of values. Throws std::invalid_argument.
penstock::train::loss_options loss_of(const train_options& o);

/// How the two inputs come together; nothing where there is one.
penstock::train::pair_options pair_of(const train_options& o);

/// The optimizer that the options name. Throws std::invalid_argument.
penstock::train::optimizer_options optimizer_of(const train_options& o);

/// How its learning rate changes. Throws std::invalid_argument.
penstock::train::schedule schedule_of(const train_options& o);

}  // namespace examples
