#pragma once

#include <penstock/bytes.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/order.hpp>
#include <penstock/train/levers.hpp>
#include <penstock/train/optimizer.hpp>

#include <CLI/CLI.hpp>

#include <penstock/train/loss.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// What the command line of penstock-train says.
struct train_options {
  std::vector<std::string> files;
  std::string x, y, test_x, test_y;  ///< paths of datasets; empty: found in the file
  std::size_t classes = 0;           ///< 0: one more than the largest label

  std::vector<std::size_t> hidden{512, 256};
  std::size_t batch_rows = 256;
  std::size_t accumulate = 1;
  std::uint64_t epochs = 10;
  std::string optimizer = "adamw";
  std::optional<double> learning_rate, weight_decay, momentum;  ///< absent: the optimizer's defaults
  std::string schedule = "constant";
  std::uint64_t warmup_steps = 0;
  std::string activation = "relu";
  bool layer_norm = false;
  double dropout = 0;
  std::string loss = "softmax";
  double label_smoothing = 0;
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
  bool resume = false;
  bool plan_only = false;
  std::string json;
};

/// Adds the options to the command line that is parsed into `o`.
void add_train_options(CLI::App& app, train_options& o);

/// The loss that the options name: of classes, or of values. Throws std::invalid_argument.
penstock::train::loss_options loss_of(const train_options& o);

/// The optimizer that the options name. Throws std::invalid_argument.
penstock::train::optimizer_options optimizer_of(const train_options& o);

}  // namespace examples
