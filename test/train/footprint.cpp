#include "gpu.hpp"
#include "training_file.hpp"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

constexpr std::size_t driver_granularity = 2_MiB;

/// Trains and evaluates; returns the device's free bytes with everything still held.
std::size_t free_bytes_while_trained(training_run& run, gpu::device device) {
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.evaluate(*run.planned.testing);
  run.trainer.train_epoch(run.planned.training);
  run.stream->synchronize();
  return gpu::memory_of(device).free_bytes;
}

struct configuration {
  std::string name;
  std::function<void(train::trainer_options&)> change;
};

/// A model of 2 million parameters in ten ways, with each lever on.
std::vector<configuration> configurations() {
  const auto stage = [](auto change) { return [change](train::trainer_options& o) { change(o.stage); }; };
  const auto deep = [](train::stage_options& s) { s.model.hidden = std::vector<std::size_t>(9, 512), s.rows = 1024; };
  return {
      {"float32, AdamW", stage([](auto&) {})},
      {"tf32", stage([](auto& s) { s.precision = train::precision::tf32; })},
      {"bf16", stage([](auto& s) { s.precision = train::precision::bf16; })},
      {"fp16", stage([](auto& s) { s.precision = train::precision::fp16; })},
      {"SGD without momentum", stage([](auto& s) { s.optimizer = train::sgd{.momentum = 0}; })},
      {"steps of 4 batches, clipped", [](train::trainer_options& o) { o.accumulate = 4, o.stage.clip_norm = 1; }},
      {"9 layers, recomputed by 3", stage([deep](auto& s) { deep(s), s.recompute_layers = 3; })},
      {"moments on the host", stage([](auto& s) { s.offload.optimizer = true; })},
      {"9 layers, activations on the host", stage([deep](auto& s) { deep(s), s.offload.activations = true; })},
      {"9 layers, bf16, every lever", stage([deep](auto& s) {
         deep(s), s.precision = train::precision::bf16, s.recompute_layers = 2;
         s.offload = {.optimizer = true, .activations = true};
       })},
  };
}

/// Device memory that training takes beyond what was taken before, once libraries have theirs.
std::size_t bytes_taken(const training_file& data, const train::trainer_options& options, gpu::device device,
                        std::size_t& planned) {
  {
    training_run warm_up(data, options, device);
    free_bytes_while_trained(warm_up, device);
  }
  const std::size_t before = gpu::memory_of(device).free_bytes;
  training_run run(data, options, device);
  planned = run.planned.memory->bytes(gpu::memory_kind::device);
  return before - free_bytes_while_trained(run, device);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(footprint)

BOOST_AUTO_TEST_CASE(the_measured_peak_is_the_plan_in_each_of_ten_configurations, test::on_gpu()) {
  const training_file data(4096);
  std::cout << "| configuration | planned, MiB | taken, MiB | beyond the plan |\n|---|---|---|---|\n";
  for (const auto& [name, change] : configurations()) {
    auto options = small_trainer();
    options.stage.model.hidden = {2048, 1024};
    change(options);
    std::size_t planned = 0;
    const std::size_t taken = bytes_taken(data, options, test::first_gpu(), planned);
    const double beyond = static_cast<double>(taken) - static_cast<double>(planned);
    std::cout << fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} MiB, {:.2f} % |", name,
                             static_cast<double>(planned) / (1 << 20), static_cast<double>(taken) / (1 << 20),
                             beyond / (1 << 20), 100 * beyond / static_cast<double>(planned))
              << std::endl;
    BOOST_TEST(taken >= planned, name);
    BOOST_TEST(taken - planned <= std::max(planned / 100, 4_MiB), name << " takes " << taken << " of " << planned);
  }
}

// Context, modules and the libraries' own allocations are outside the budget: a first run brings them in.
BOOST_AUTO_TEST_CASE(training_takes_the_device_memory_of_its_plan_and_no_more, test::on_gpu()) {
  const gpu::device device = test::first_gpu();
  const training_file data;
  auto options = small_trainer();
  options.stage.model.hidden = {2048, 1024};
  std::size_t planned = 0;
  const std::size_t taken = bytes_taken(data, options, device, planned);
  BOOST_TEST(planned > 32_MiB);
  BOOST_TEST(taken >= planned);
  BOOST_TEST(taken <= align_up(planned, driver_granularity));
}

BOOST_AUTO_TEST_SUITE_END()
