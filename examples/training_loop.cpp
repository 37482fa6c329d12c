// A training loop of one's own on Penstock's batches and training stage: training_loop FILE.h5 /x /label CLASSES

#include <penstock/pipeline/description.hpp>
#include <penstock/train/stage.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace ps = penstock;
using namespace ps::literals;

constexpr std::size_t batch_rows = 256;
constexpr std::uint64_t epochs = 5;

ps::pipeline::opened open_rows(const char* file, const char* x, const char* label) {
  auto source = ps::pipeline::source{}
                    .field("x", ps::io::datasets(file, x), {.as = ps::type::float32})
                    .field("label", ps::io::datasets(file, label), {.as = ps::type::int32});
  return (ps::pipeline::read(source, ps::pipeline::shuffled{.seed = 1}) |
          ps::pipeline::batch_options{.rows = batch_rows, .last = ps::pipeline::last_batch::pad})
      .open();
}

void train(ps::pipeline::opened rows, std::size_t classes) {
  const auto& shape = rows.fields().front().row_shape;
  const auto inputs = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<std::size_t>{});
  const ps::train::stage_options options{.model = {.inputs = inputs, .hidden = {128}, .outputs = classes},
                                         .rows = batch_rows};

  // The model's memory and the pipeline's come from one budget, planned before anything is allocated.
  const auto device = ps::gpu::device::best();
  auto items = ps::train::plan(device, options);
  const auto plan = rows.plan(device, {.device_bytes = 64_MiB, .pinned_bytes = 64_MiB}, items);
  items.add(plan.ledger);
  const auto memory = std::make_shared<ps::gpu::memory>(device, items);

  const ps::gpu::stream stream(device);
  ps::train::stage stage(stream, options, memory);
  auto pipeline = std::move(rows).build(plan, memory);
  for (auto& batch : pipeline.epochs(0, epochs, {.stream = stream})) {
    stage.accumulate(batch.field<float>("x"), batch.field<std::int32_t>("label"), batch.rows(), batch.valid_rows());
    stage.update(1e-3);
    if (batch.index() + 1 == pipeline.batches_per_epoch()) {
      const auto done = stage.progress();
      if (std::min({done.bad_input, done.bad_loss, done.bad_gradient, done.bad_label}) != done.no_row)
        throw std::runtime_error("an input or the loss is not finite, or a label is outside 0 to CLASSES - 1");
      std::cout << "epoch " << batch.epoch() << ": loss " << done.running.loss() << ", accuracy "
                << done.running.accuracy() << '\n';
      stage.reset();
    }
  }
  std::cout << '\n' << pipeline.report();
}

int main(int argc, char** argv) try {
  const std::size_t classes = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : 0;
  if (classes < 2) {
    std::cerr << "usage: training_loop FILE.h5 /x /label CLASSES\n";
    return 2;
  }
  train(open_rows(argv[1], argv[2], argv[3]), classes);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "training_loop: " << e.what() << '\n';
  return 1;
}
