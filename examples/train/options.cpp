#include "options.hpp"

#include "../common/damaged.hpp"
#include "../common/program.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace examples {
namespace {

constexpr std::uint64_t most_counted = std::uint64_t{1}
                                       << 31;  // rows of a batch, batches of a step: their product fits

/// Numbers from 0 to 1. CLI::Range lets NaN through.
CLI::Validator share() {
  const auto wrong = [](const std::string& text) {
    double value = 0;
    const bool right = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 1;
    return right ? std::string() : fmt::format("{} is no number from 0 to 1", text);
  };
  return {wrong, "FLOAT in [0 - 1]", "share"};
}

void parse_class_weights(const std::string& text, train_options& o) {
  o.balanced_classes = text == "balanced";
  o.class_weights.clear();
  if (o.balanced_classes) return;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    double weight = 0;
    if (!CLI::detail::lexical_cast(part, weight) || !(weight >= 0) || !std::isfinite(weight))
      throw CLI::ValidationError("--class-weights", fmt::format("'{}' is no weight; it is 0 or more", part));
    o.class_weights.push_back(weight);
  }
}

void add_data_options(CLI::App& app, train_options& o) {
  app.add_option("FILE", o.files, "HDF5 files, or quoted patterns of files; their rows are joined in this order")
      ->required();
  app.add_option("--x", o.x, "Dataset of the inputs; default: /train/images or /x, whichever is there");
  app.add_option("--x2", o.x2, "Dataset of second inputs, to be compared with the first ones row by row");
  app.add_option("--y", o.y,
                 "Dataset of the labels, numbers or texts, or of values to learn; default: /train/labels or /label");
  app.add_option(
      "--test-x", o.test_x,
      "Dataset of the test inputs; default: /test/images, where every file has it and /test/labels, and no dataset "
      "of inputs or labels is named");
  app.add_option("--test-x2", o.test_x2, "Dataset of the second test inputs")->needs("--x2");
  app.add_option("--test-y", o.test_y, "Dataset of the test labels; default: /test/labels, as for --test-x");
  app.add_option("--weights", o.weights, "Dataset of what each training row counts; 0 masks a row, whatever it holds");
  app.add_option("--test-weights", o.test_weights, "The same for the test rows; default: all 1");
  app.add_option("--validation", o.validation,
                 "Share of the training rows that is kept for evaluation, in place of a test set; 0.1: a tenth")
      ->check(share());
  app.add_option("--validation-group", o.validation_group,
                 "Dataset of the training rows: rows with the same value there are all kept, or all trained on");
  add_damaged_option(app, o.damaged, "they teach nothing, are not evaluated on, and the report lists them");
}

void add_label_options(CLI::App& app, train_options& o) {
  app.add_option("--classes", o.classes, "Classes; default: one more than the largest label")->check(at_least(2));
  app.add_option("--labels-from", o.labels_from, "The number of the first class: 0 or 1")
      ->check(CLI::IsMember({0, 1}))
      ->capture_default_str();
  app.add_flag("--one-hot", o.one_hot, "A row of --y holds a value for each class: one-hot, or probabilities");
  app.add_option_function<std::string>(
         "--class-weights,--classes-weights", [&o](const std::string& text) { parse_class_weights(text, o); },
         "For softmax: what a row of each class counts, as 1,2.5,0.5; or balanced: the rarer, the more")
      ->type_name("LIST");
}

void add_order_options(CLI::App& app, train_options& o) {
  app.add_flag_callback(
      "--no-normalise", [&o] { o.normalise = false; },
      "Take inputs as they are, without the pass for mean and deviation");
  app.add_flag("--skip-non-finite", o.skip_non_finite, "Skip and count steps with NaN or infinity instead of failing");
  app.add_option("--run-rows", o.order.run_rows, "Rows that are shuffled as one, and read together; 0: from the file")
      ->capture_default_str();
  app.add_option("--pool-rows", o.order.pool_rows,
                 "Rows on the device that shuffled rows are drawn from; 0: 4 runs, 2 MiB at least")
      ->capture_default_str();
}

void add_model_options(CLI::App& app, train_options& o) {
  app.add_option("--hidden", o.hidden, "Outputs of the hidden layers, as 512,256; 0: none")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  auto* const second = app.get_option("--x2");
  const auto for_two = [&](CLI::Option* option) { return option->needs(second)->capture_default_str(); };
  for_two(app.add_option("--towers", o.towers, "With --x2: the hidden layers of both inputs are shared or separate"))
      ->check(CLI::IsMember({"shared", "separate"}));
  for_two(app.add_option("--join", o.join, "With --x2: difference, product, concat or dot of what the towers give"))
      ->check(CLI::IsMember({"difference", "product", "concat", "dot"}));
  for_two(app.add_option("--embedding", o.embedding,
                         "With --x2: values that each tower gives; 0: 1 to rank by a difference, else 64"))
      ->check(at_least(0, most_counted));
  app.add_option("--head", o.head, "With --x2: outputs of hidden layers after the join, as 32,16; default: none")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(second);
  app.add_option("--batch-rows,--batch-size", o.batch_rows, "Rows that go through the model at once")
      ->check(at_least(1, most_counted))
      ->capture_default_str();
  app.add_option("--accumulate", o.accumulate, "Batches of one step of the optimizer")
      ->check(at_least(1, most_counted))
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "Passes over the training set, those before a resume included")
      ->capture_default_str();
  app.add_option("--optimizer", o.optimizer, "How weights change")
      ->check(CLI::IsMember({"sgd", "adamw"}))
      ->capture_default_str();
  app.add_option("--learning-rate,--lr", o.learning_rate, "Default: 0.001 for adamw, 0.05 for sgd");
  app.add_option("--weight-decay", o.weight_decay, "Default: 0.01 for adamw, 0 for sgd");
  app.add_option("--schedule", o.schedule,
                 "Of the learning rate: constant; cosine: to --final-factor of it over all epochs; or steps: times "
                 "--step-factor after every --step-epochs")
      ->check(CLI::IsMember({"constant", "cosine", "steps"}))
      ->capture_default_str();
  app.add_option("--final-factor", o.final_factor, "For cosine: what the rate ends at, of itself; default: 0");
  app.add_option("--step-epochs", o.step_epochs, "For steps: epochs with the same rate; default: 10")
      ->check(at_least(1, most_counted));
  app.add_option("--step-factor", o.step_factor, "For steps: what the rate is multiplied with; default: 0.1");
  app.add_option("--warmup-steps", o.warmup_steps, "Steps over which the learning rate rises first")
      ->capture_default_str();
  app.add_option("--activation", o.activation, "Of the hidden layers")
      ->check(CLI::IsMember({"relu", "gelu", "tanh", "sigmoid", "identity"}))
      ->capture_default_str();
  app.add_flag("--layer-norm", o.layer_norm, "Normalise each row between a hidden layer's sums and its activation");
  app.add_option("--loss", o.loss,
                 "softmax: of classes; binary: of yes and no, for each value of a row of --y; ranking: the first of "
                 "two inputs is better (1) or the second (0); mse, huber: of values")
      ->check(CLI::IsMember({"softmax", "binary", "ranking", "mse", "huber"}))
      ->capture_default_str();
  app.add_option("--label-smoothing", o.label_smoothing,
                 "For softmax: share of a label that is spread over all classes")
      ->capture_default_str();
  app.add_option("--positive-weight", o.positive_weight, "For binary: what a yes counts, against a no")
      ->capture_default_str();
  app.add_option("--margin", o.margin, "For ranking: the lead that is wanted of the better one; 0: the logistic loss")
      ->capture_default_str();
  app.add_option("--delta", o.delta, "For huber: the distance up to which its square counts; default: 1");
  app.add_option("--dropout", o.dropout, "Probability that an output of a hidden layer is set to 0 in training")
      ->capture_default_str();
  app.add_option("--precision", o.precision,
                 "Of matrix products; tf32 needs a CUDA device, and bf16 and fp16 are slow without one")
      ->check(CLI::IsMember({"float32", "tf32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_option("--recompute", o.recompute,
                 "Keep the outputs of every so many layers only, and compute the others again; 0: keep all")
      ->check(at_least(0, most_counted))
      ->capture_default_str();
  app.add_option("--floor-rows", o.floor_rows,
                 "Rows of a batch below which activations are computed again, and then moments and activations wait in "
                 "pinned memory, before batches become smaller")
      ->check(at_least(1, most_counted))
      ->capture_default_str();
  app.add_option(
         "--offload", o.offload,
         "What waits in pinned memory while it is not worked on: optimizer (its moments), activations, or both, "
         "as optimizer,activations")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"optimizer", "activations"}));
  app.add_option("--clip-norm", o.clip_norm, "Scale a step's gradient down to this norm; 0: never")
      ->capture_default_str();
  app.add_option("--momentum", o.momentum, "For sgd; default: 0.9");
  app.add_flag("--nesterov", o.nesterov, "For sgd: Nesterov's form of momentum");
  app.add_option("--beta1", o.beta1, "For adamw: what the mean of gradients keeps from step to step; default: 0.9");
  app.add_option("--beta2", o.beta2, "For adamw: the same of the mean of their squares; default: 0.999");
  app.add_option("--epsilon", o.epsilon, "For adamw: what the root of that mean is added to; default: 1e-8");
  app.add_option("--seed", o.order.seed, "Another seed, other initial weights and another order")
      ->capture_default_str();
}

void add_machine_options(CLI::App& app, train_options& o) {
  app.add_option("--device", o.device, "host (cpu), cuda:N, cuda, or auto: the best there is")->capture_default_str();
  add_bytes_option(app, "--device-memory", o.budget.device_bytes, "Budget of device memory");
  add_bytes_option(app, "--pinned-memory", o.budget.pinned_bytes, "Budget of pinned host memory");
  add_bytes_option(app, "--host-memory", o.budget.host_bytes, "Budget of other host memory: indexes, scratch");
  app.add_option("--threads", o.threads,
                 "Threads that read, and on the host compute; 0: as many as processors, and 64 at most that compute")
      ->capture_default_str();
  app.add_flag(
      "--calibrate", o.calibrate,
      "Choose how many bytes of the training rows travel together, and in how many slots, by trying for a second");
}

void add_result_options(CLI::App& app, train_options& o) {
  auto* const checkpoint = app.add_option(
      "--checkpoint", o.checkpoint,
      "HDF5 file of weights and state, written after each epoch and when stopped; it may be there with --resume alone");
  app.add_flag("--resume", o.resume, "Go on from the checkpoint, as if training had never stopped")->needs(checkpoint);
  auto* const beside = app.add_flag_callback(
      "--keep-best", [&o] { o.keep_best = true; },
      "Keep the checkpoint of the best epoch too, beside the other with .best at its end");
  beside->needs(checkpoint);
  app.add_option("--best-checkpoint", o.best_checkpoint, "Keep the checkpoint of the best epoch in this file")
      ->excludes(beside);
  app.add_option("--patience", o.stop.patience,
                 "End when the evaluation was no better for so many epochs in a row; 0: never")
      ->capture_default_str();
  app.add_option("--min-delta", o.stop.min_delta, "What it must change by to count as better, for --patience")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--watch", [&o](const std::string& name) { o.stop.watched = penstock::train::parse_quantity(name); },
         "What tells a better epoch: loss or accuracy of the test set")
      ->check(CLI::IsMember({"loss", "accuracy"}))
      ->default_str("loss");
  auto* const log = app.add_option(
      "--log", o.log,
      "Write a line for each epoch to this file, .jsonl or .csv; a resumed run adds its own, and no other may");
  app.add_option("--log-steps", o.log_steps,
                 "Also a line after every so many steps, for which the device is waited for")
      ->needs(log);
  app.add_option("--plot", o.plot, "Draw loss and accuracy against the epoch, .svg or .png; needs gnuplot");
  app.add_option("--trace", o.trace, "Write what blocks of the training rows went through to this file, for Perfetto");
  app.add_flag("--plan", o.plan_only, "Show the memory plan, and end");
  app.add_option("--json", o.json, "Write the results to this file");
  app.add_option("--top-k", o.top_k, "Show the share of rows whose class is among so many most probable ones")
      ->check(at_least(1, most_counted));
  app.add_flag("--confusion", o.confusion,
               "At the end, show each class's precision and recall on the test set, and what it was taken for");
}

}  // namespace

void add_train_options(CLI::App& app, train_options& o) {
  add_data_options(app, o);
  add_label_options(app, o);
  add_order_options(app, o);
  add_model_options(app, o);
  add_machine_options(app, o);
  add_result_options(app, o);
  app.final_callback([&o] {
    if (o.keep_best) o.best_checkpoint = o.checkpoint + ".best";
  });
}

}  // namespace examples
