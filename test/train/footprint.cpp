#include "gpu.hpp"
#include "training_file.hpp"

#include <boost/test/unit_test.hpp>

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

}  // namespace

BOOST_AUTO_TEST_SUITE(footprint)

// Context, modules and the libraries' own allocations are outside the budget: a first run brings them in.
BOOST_AUTO_TEST_CASE(training_takes_the_device_memory_of_its_plan_and_no_more, test::on_gpu()) {
  const gpu::device device = test::first_gpu();
  const training_file data;
  auto options = small_trainer();
  options.stage.model.hidden = {2048, 1024};
  {
    training_run warm_up(data, options, device);
    free_bytes_while_trained(warm_up, device);
  }
  const std::size_t before = gpu::memory_of(device).free_bytes;
  training_run run(data, options, device);
  const std::size_t planned = run.planned.memory->bytes(gpu::memory_kind::device);
  const std::size_t taken = before - free_bytes_while_trained(run, device);
  BOOST_TEST(planned > 32_MiB);
  BOOST_TEST(taken >= planned);
  BOOST_TEST(taken <= align_up(planned, driver_granularity));
}

BOOST_AUTO_TEST_SUITE_END()
