#include "options.hpp"

#include "../common/program.hpp"

namespace examples {
namespace {

void add_data_options(CLI::App& app, libtorch_options& o) {
  app.add_option("FILE", o.files, "HDF5 files, or quoted patterns of files; their rows are joined in this order")
      ->required();
  auto* const x = app.add_option("--x", o.x,
                                 "Dataset of the inputs: rows of [height, width], [channels, height, width] or "
                                 "[values]; default: /train/images, with /test/images for testing");
  auto* const y =
      app.add_option("--y", o.y, "Dataset of the labels, whole numbers from 0 on or texts; default: /train/labels");
  auto* const test_x = app.add_option("--test-x", o.test_x, "Dataset of the test inputs");
  auto* const test_y = app.add_option("--test-y", o.test_y, "Dataset of the test labels");
  x->needs(y);
  y->needs(x);
  test_x->needs(test_y);
  test_y->needs(test_x);
  app.add_option("--scale", o.scale, "Factor of the inputs; default: 1/255 where they are uint8, else 1");
  app.add_flag("--channels-last", o.channels_last, "Rows are [height, width, channels]");
  app.add_option("--classes", o.classes, "Classes; default: one more than the largest label")->check(at_least(2));
}

void add_training_options(CLI::App& app, libtorch_options& o) {
  app.add_option("--batch-rows,--batch-size", o.batch_rows, "Rows of a step")
      ->check(at_least(1, std::uint64_t{1} << 31))
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "Passes over the training set")->check(at_least(1))->capture_default_str();
  app.add_option("--width", o.width, "Channels of the first convolution; the second has twice as many")
      ->check(at_least(1, 4096))
      ->capture_default_str();
  app.add_option("--learning-rate,--lr", o.learning_rate, "Of AdamW; falls to 0 over all epochs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Another seed, other initial weights and another order")->capture_default_str();
}

void add_machine_options(CLI::App& app, libtorch_options& o) {
  app.add_option("--device", o.device, "host (cpu), cuda:N, cuda, or auto: the best there is")->capture_default_str();
  add_bytes_option(app, "--device-memory", o.device_bytes,
                   "Budget of GPU memory, for Penstock's rows and all that torch allocates");
  add_bytes_option(app, "--rows-memory", o.pipeline.device_bytes,
                   "Of it, what rows may take; for the training set, and again for the test set");
  add_bytes_option(app, "--pinned-memory", o.pipeline.pinned_bytes, "Pinned host memory for each of these");
  add_bytes_option(app, "--host-memory", o.pipeline.host_bytes, "Other host memory for each: indexes, scratch");
  app.add_option("--threads", o.threads, "Threads that read; 0: chosen")->capture_default_str();
  app.add_option("--json", o.json, "Write the results to this file");
}

}  // namespace

void add_libtorch_options(CLI::App& app, libtorch_options& o) {
  add_data_options(app, o);
  add_training_options(app, o);
  add_machine_options(app, o);
}

}  // namespace examples
