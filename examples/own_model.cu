// A model of your own in Penstock's training loop, within its budget and with its checkpoints: linear regression with
// kernels of its own, on CUDA or on the host. Ctrl-C and SIGTERM end it with a checkpoint, from which it goes on.
// own_model FILE.h5 /x /y EPOCHS [DEVICE [CHECKPOINT.h5]]

#include <penstock/gpu/permutation.hpp>  // PENSTOCK_HOST_DEVICE
#include <penstock/pipeline/description.hpp>
#include <penstock/train/memory_plan.hpp>
#include <penstock/train/trainer.hpp>

#include <charconv>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "common/signals.hpp"  // the first signal is a stop request, and a second one ends the program

namespace ps = penstock;
using namespace ps::literals;
using ps::gpu::memory_kind;

constexpr std::size_t batch_rows = 256;
#ifdef __CUDACC__
template <class F>
__global__ void each(std::size_t count, F f) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) f(i);
}
#endif

/// f(i) for i < count, in the stream's order.
template <class F>
void for_each([[maybe_unused]] ps::gpu::stream_ref stream, std::size_t count, F f) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) {
    each<<<64, 128, 0, stream.native()>>>(count, f);
    if (const cudaError_t failure = cudaGetLastError(); failure != cudaSuccess)
      throw std::runtime_error(std::string("a kernel could not be launched: ") + cudaGetErrorString(failure));
    return;
  }
#endif
  for (std::size_t i = 0; i < count; ++i) f(i);
}

struct measure_row {  // how far row i's prediction is off
  const float *x, *y, *weight;
  std::size_t inputs;
  float* off;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t i) const {
    off[i] = -y[i];
    for (std::size_t j = 0; j < inputs; ++j) off[i] += weight[j] * x[i * inputs + j];
  }
};

struct add_losses {  // by one thread: the order of the sum is always the same
  const float* off;
  std::size_t rows;
  ps::train::metrics* sums;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t) const {
    for (std::size_t i = 0; i < rows; ++i) sums->loss_sum += 0.5 * static_cast<double>(off[i] * off[i]);
    sums->weight_sum += static_cast<double>(rows);
    sums->rows += rows;
  }
};

struct descend {  // weight j, by the mean gradient of the batch
  const float *x, *off;
  std::size_t inputs, rows;
  float rate, *weight;
  PENSTOCK_HOST_DEVICE void operator()(std::size_t j) const {
    float sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += off[i] * x[i * inputs + j];
    weight[j] -= rate * sum / static_cast<float>(rows);
  }
};

struct linear_model {
  std::size_t inputs;
  ps::gpu::stream_ref stream{};
  float *weight = nullptr, *off = nullptr;

  ps::gpu::ledger plan(ps::gpu::device) const {
    ps::gpu::ledger items;
    items.add(memory_kind::device, "own: weights", inputs * sizeof(float));
    items.add(memory_kind::device, "own: distances", batch_rows * sizeof(float));
    return items;
  }
  void bind(ps::gpu::stream_ref on, const ps::gpu::memory& memory) {
    stream = on;
    weight = reinterpret_cast<float*>(memory.at(memory_kind::device, "own: weights").data());
    off = reinterpret_cast<float*>(memory.at(memory_kind::device, "own: distances").data());
    ps::gpu::fill(stream, weight, 0, inputs * sizeof(float));
  }
  void step(const ps::pipeline::batch& batch, const ps::train::step_place& at) {
    const auto *x = batch.field<float>("x"), *y = batch.field<float>("y");
    for_each(stream, batch.valid_rows(), measure_row{x, y, weight, inputs, off});
    for_each(stream, 1, add_losses{off, batch.valid_rows(), at.sums});
    const auto rate = static_cast<float>(at.learning_rate);
    if (at.training) for_each(stream, inputs, descend{x, off, inputs, batch.valid_rows(), rate, weight});
  }
  void visit_state(const ps::train::state_visitor& visit) {
    visit({"/model/weight", ps::type::float32, {inputs}, reinterpret_cast<std::byte*>(weight)});
  }
};

/// Throws where it is no whole number.
std::uint64_t epochs_of(const std::string& text) {
  std::uint64_t epochs = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, epochs);
  if (read.ec != std::errc() || read.ptr != end)
    throw std::invalid_argument("EPOCHS is '" + text + "'; it is a whole number, from 0 on");
  return epochs;
}

/// The model takes rows of numbers side by side, and learns one number for each: of more it would see the first ones
/// only. Gives the inputs of a row.
std::size_t inputs_of(const ps::pipeline::opened& rows, const std::string& file, const std::string& x_name,
                      const std::string& y_name) {
  const auto& x = rows.fields()[0].row_shape;
  std::uint64_t y = 1;
  for (const std::uint64_t extent : rows.fields()[1].row_shape) y *= extent;
  if (x.size() != 1)
    throw std::invalid_argument(file + ":" + x_name + ": it has " +
                                (x.empty() ? "1 axis" : std::to_string(x.size() + 1) + " axes") +
                                "; the inputs are rows of numbers side by side, a dataset of two axes");
  if (x[0] == 0) throw std::invalid_argument(file + ":" + x_name + ": its rows hold no value");
  if (y != 1)
    throw std::invalid_argument(file + ":" + y_name + ": a row has " + std::to_string(y) +
                                " values; the model learns one for each row");
  return x[0];
}

int main(int argc, char** argv) try {
  if (argc < 5) return std::cerr << "usage: own_model FILE.h5 /x /y EPOCHS [DEVICE [CHECKPOINT.h5]]\n", 2;
  const std::uint64_t epochs = epochs_of(argv[4]);
  examples::stop_on_signal signals("own_model: stopped before the first step; there is nothing to keep");
  auto source = ps::pipeline::source{}
                    .field("x", ps::io::datasets(argv[1], argv[2]), {.as = ps::type::float32})
                    .field("y", ps::io::datasets(argv[1], argv[3]), {.as = ps::type::float32});
  const ps::pipeline::batch_options batches{.rows = batch_rows};
  auto rows = (ps::pipeline::read(source, ps::pipeline::shuffled{.seed = 1}) | batches).open();
  linear_model model{inputs_of(rows, argv[1], argv[2], argv[3])};
  const auto functions = ps::train::functions_of(model);
  const auto device = ps::gpu::device::parse(argc > 5 ? argv[5] : "auto");
  const auto plan = ps::train::plan(device, {.device_bytes = 64_MiB}, functions, rows);
  auto run = ps::train::build(plan, std::move(rows));
  const ps::gpu::stream stream(device);
  const ps::train::stage_options stage{.optimizer = ps::train::sgd{.learning_rate = 0.1}, .rows = batch_rows};
  ps::train::trainer trainer(stream, {.stage = stage}, run.memory, functions);
  if (argc > 6 && std::filesystem::exists(argv[6])) trainer.resume(argv[6]);
  signals.begin();
  while (trainer.position().epoch < epochs && signals.signal() == 0) {
    const auto done = trainer.train_epoch(run.training, signals.token());
    if (done.complete) std::cout << "epoch " << done.epoch + 1 << ": loss " << done.training.loss() << '\n';
    if (argc > 6) trainer.save(argv[6]);
  }
  if (signals.signal() == 0) return 0;
  const auto& at = trainer.position();
  std::cout << "stopped at epoch " << at.epoch + 1 << ", batch " << at.next_batch << '\n';
  return 128 + signals.signal();
} catch (const std::exception& e) {
  return std::cerr << "own_model: " << e.what() << '\n', 1;
}
