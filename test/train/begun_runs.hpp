#pragma once

#include "training_file.hpp"

#include "batch_fields.hpp"
#include "checkpoint.hpp"
#include "stage_learner.hpp"
#include "training_source.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <utility>
#include <vector>

namespace penstock::test {

/// Of runs that are stopped within a step: 14 batches of 16 rows, in steps of 3; the last step has 2, of 28 rows.
namespace split {
inline constexpr std::size_t rows = 220, batch_rows = 16, in_step = 3;
inline constexpr std::uint64_t batches = 14;
}  // namespace split

inline train::trainer_options begun_options(std::size_t accumulate = split::in_step,
                                            std::size_t of_rows = split::batch_rows) {
  auto options = small_trainer(of_rows, accumulate);
  options.report_every = 1;
  return options;
}

inline pipeline::opened begun_source(const training_file& data, const train::trainer_options& options) {
  const auto source = pipeline::source{}
                          .field("x", {{data.file, "/x"}}, {.as = options.stage.compute})
                          .field("label", {{data.file, "/label"}}, {.as = type::int32});
  return (pipeline::read(source, pipeline::shuffled{.seed = 5, .run_rows = 16, .pool_rows = 64}) |
          pipeline::batch_options{.rows = options.stage.rows, .held = 0})
      .open();
}

/// A stage with its pipeline.
struct planned_stage {
  gpu::stream stream;
  train::planned_run planned;

  planned_stage(const training_file& data, const train::trainer_options& options, gpu::device device,
                fault_seam faults = {})
      : stream(device), planned([&] {
          auto training = begun_source(data, options);
          const auto plan = train::plan(device, {}, options.stage, training);
          return train::build(plan, std::move(training), {}, std::move(faults));
        }()) {}
};

/// A run by the trainer's loop.
struct whole_run : planned_stage {
  train::trainer trainer;

  whole_run(const training_file& data, const train::trainer_options& options, gpu::device device, double loss_scale = 0,
            fault_seam faults = {})
      : planned_stage(data, options, device, std::move(faults)), trainer(stream, options, planned.memory) {
    if (loss_scale > 0) trainer.stage().set_loss_scale(loss_scale);
  }
  train::epoch_progress epoch(std::stop_token stop = {}, const train::trainer::observer& watch = {}) {
    return trainer.train_epoch(planned.training, std::move(stop), watch);
  }
  std::vector<std::byte> state() {
    std::vector<std::byte> all;
    for (const train::state_item& item : trainer.stage().state()) {
      std::size_t bytes = size_of(item.element);
      for (const auto extent : item.shape) bytes *= extent;
      all.resize(all.size() + bytes);
      trainer.stage().read_state(item, 0, &all[all.size() - bytes], bytes);
    }
    return all;
  }
};

/// Writes what a run keeps that is stopped after so many batches of its first epoch.
inline void save_after(std::uint64_t done, const training_file& data, const train::trainer_options& options,
                       gpu::device device, double loss_scale, const std::filesystem::path& file) {
  planned_stage run(data, options, device);
  train::stage stage(run.stream, options.stage, run.planned.memory);
  if (loss_scale > 0) stage.set_loss_scale(loss_scale);
  train::stage_learner learner(std::move(stage), [&](const pipeline::batch& batch, const train::step_place& place) {
    return train::rows_of(batch, options, place.training);
  });
  learner.reset({});
  std::uint64_t n = 0;
  for (auto& batch : run.planned.training.epochs(0, 1, {.stream = run.stream})) {
    if (n == done) break;
    learner.step(batch, {.learning_rate = 0.01,
                         .begins = n % split::in_step == 0,
                         .ends = (n + 1) % split::in_step == 0 || n + 1 == split::batches,
                         .first_row = n * split::batch_rows});
    ++n;
  }
  const train::position at{.next_batch = done / split::in_step * split::in_step,
                           .begun = learner.begun(),
                           .training = learner.progress().at_step,
                           .source = train::source_of(run.planned.training, options, false)};
  BOOST_TEST(at.begun.batches == done % split::in_step);
  train::save_checkpoint(file, learner, options, at, {});
}

}  // namespace penstock::test
