#pragma once

#include <penstock/io/writer.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/train/memory_plan.hpp>
#include <penstock/train/trainer.hpp>

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace penstock::test {

/// A folder that is gone with the fixture.
struct scratch_folder {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("penstock-train-" + std::to_string(::getpid()));
  scratch_folder() { std::filesystem::create_directories(folder); }
  ~scratch_folder() { std::filesystem::remove_all(folder); }
  std::filesystem::path path(const char* name) const { return folder / name; }
};

/// A file of a task that can be learned: /x float32 rows x 12, /label uint8 of 4 classes, the value at the label
/// raised.
struct training_file : scratch_folder {
  static constexpr std::size_t columns = 12, classes = 4;
  std::filesystem::path file = folder / "data.h5";
  std::vector<float> x;
  std::vector<std::uint8_t> labels;

  explicit training_file(std::size_t rows = 1000) : x(rows * columns), labels(rows) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(random);
    for (std::size_t row = 0; row < rows; ++row) {
      labels[row] = static_cast<std::uint8_t>(random() % classes);
      x[row * columns + labels[row]] += 3;
    }
    write();
  }

  /// Writes x and labels as they are now.
  void write() const {
    io::writer to(file);
    to.create("/x", type::float32, {labels.size(), columns}, {.chunk_shape = {64, columns}, .deflate_level = 1});
    to.write_rows("/x", 0, labels.size(), std::as_bytes(std::span(x)));
    to.create("/label", type::uint8, {labels.size()});
    to.write_rows("/label", 0, labels.size(), std::as_bytes(std::span(labels)));
    to.commit();
  }

  pipeline::opened open(std::size_t batch_rows, pipeline::last_batch last = pipeline::last_batch::pad,
                        std::uint64_t seed = 5) const {
    auto source = pipeline::source{}
                      .field("x", {{file, "/x"}}, {.as = type::float32})
                      .field("label", {{file, "/label"}}, {.as = type::int32});
    return (pipeline::read(source, pipeline::shuffled{.seed = seed, .run_rows = 16, .pool_rows = 128}) |
            pipeline::batch_options{.rows = batch_rows, .last = last, .held = 0})
        .open();
  }
};

inline train::trainer_options small_trainer(std::size_t batch_rows = 64, std::size_t accumulate = 1) {
  return {.stage = {.model = {.inputs = training_file::columns, .hidden = {24}, .outputs = training_file::classes},
                    .optimizer = train::adamw{.learning_rate = 0.01},
                    .rows = batch_rows,
                    .seed = 3,
                    .threads = 1},
          .accumulate = accumulate,
          .check_every = 2};
}

/// All state of a stage of float32: weights, biases and moments.
inline std::vector<float> weights_of(train::stage& stage) {
  std::vector<float> all;
  for (const train::state_item& item : stage.state()) {
    std::size_t count = 1;
    for (const auto extent : item.shape) count *= extent;
    all.resize(all.size() + count);
    stage.read_state(item, 0, reinterpret_cast<std::byte*>(&all[all.size() - count]), count * sizeof(float));
  }
  return all;
}

/// A trainer with its pipelines in one planned memory.
struct training_run {
  std::optional<gpu::stream> stream;
  train::planned_run planned;
  train::trainer trainer;

  training_run(const training_file& data, const train::trainer_options& options,
               gpu::device device = gpu::device::host(), fault_seam faults = {},
               pipeline::last_batch last = pipeline::last_batch::pad, fault_seam of_stream = {})
      : stream(std::in_place, device, false, std::move(of_stream)),
        planned([&] {
          auto training = data.open(options.stage.rows, last), testing = data.open(options.stage.rows);
          const auto plan = train::plan(device, {}, options.stage, training, &testing);
          return train::build(plan, std::move(training), std::move(testing), faults);
        }()),
        trainer(*stream, options, planned.memory) {}

  std::vector<float> weights() { return weights_of(trainer.stage()); }
};

}  // namespace penstock::test
