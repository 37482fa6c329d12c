// Faults while a model is trained: the right error, nothing leaks, and the same trainer goes on from its checkpoint to
// the bits of a run that nothing disturbed.

#include "../pipeline/small_file.hpp"
#include "../support/gpu.hpp"
#include "../train/training_file.hpp"
#include "fault_table.hpp"
#include "nth_use.hpp"
#include "resources.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpu = penstock::gpu;
namespace pp = penstock::pipeline;
namespace train = penstock::train;
namespace data = boost::unit_test::data;
using namespace penstock::test;
using penstock::fault;
using penstock::fault_site;

namespace {

/// A trainer and its pipeline, all of whose uses of the world pass the seam.
struct run_under_faults {
  train::trainer_options options = small_trainer();
  gpu::stream stream;
  train::planned_run planned;
  train::trainer trainer;
  bool in_epoch = false;  ///< the call that failed, where one did
  std::function<void()> before_epoch{}, after_epoch{};

  run_under_faults(const training_file& file, const std::string& device, const penstock::fault_seam& faults)
      : stream(gpu::device::parse(device), false, faults),
        planned([&] {
          const auto source = pp::source{}
                                  .field("x", {{file.file, "/x"}}, {.as = penstock::type::float32})
                                  .field("label", {{file.file, "/label"}}, {.as = penstock::type::int32});
          auto opened = (pp::read(source, pp::shuffled{.seed = 5, .run_rows = 16, .pool_rows = 128}) |
                         pp::batched({.rows = options.stage.rows, .last = pp::last_batch::pad, .held = 0}) |
                         pp::transport({.threads = 2}) | faults)
                            .open();
          const auto plan = train::plan(stream.device(), {}, options.stage, opened);
          return train::build(plan, std::move(opened), {}, faults);
        }()),
        trainer(stream, options, planned.memory) {}

  /// One epoch from the checkpoint on; all weights.
  std::vector<std::byte> epoch_from(const std::filesystem::path& checkpoint) {
    in_epoch = false;
    trainer.resume(checkpoint);
    in_epoch = true;
    if (before_epoch) before_epoch();
    trainer.train_epoch(planned.training);
    if (after_epoch) after_epoch();
    in_epoch = false;
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

/// Which uses of the seam count: those of an epoch alone, or also those of checkpoints.
enum class uses : std::uint8_t { of_epoch, all };

/// The fault within an epoch of one trainer, which is resumed afterwards.
void try_one_trainer(const std::string& device, const std::string& fault_name, std::shared_ptr<nth_use> faults,
                     std::function<bool(const outcome&)> expected, uses which) {
  const training_file file(600);
  run_under_faults run(file, device, faults);
  const auto checkpoint = file.path("c.h5");
  run.trainer.save(checkpoint);
  const auto undisturbed = run.epoch_from(checkpoint);
  const auto right_bits = [&] { return run.epoch_from(checkpoint) == undisturbed ? "right bits" : "other bits"; };
  try_positions({.stage = "training",
                 .fault = fault_name,
                 .on = device,
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       if (which == uses::of_epoch) {
                         faults->disarm();
                         run.before_epoch = [&] { faults->arm(n); };
                         run.after_epoch = [&] { faults->disarm(); };
                       }
                       outcome how = outcome_of(right_bits);
                       faults->disarm();
                       run.before_epoch = run.after_epoch = nullptr;
                       if (!how.sentence.empty() && !run.in_epoch) how.name += ", not in an epoch";
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = std::move(expected),
                 .afterwards = [&] { BOOST_TEST(right_bits() == std::string("right bits")); },
                 .keeps_objects = true,
                 .most = 120});
}

/// The same; when the trainer is gone, so is all that it held.
void try_training(const std::string& device, const std::string& fault_name, const std::shared_ptr<nth_use>& faults,
                  const std::function<bool(const outcome&)>& expected, uses which = uses::all) {
  {
    const training_file file(600);
    run_under_faults once(file, device, {});
    once.trainer.train_epoch(once.planned.training);  // what a process takes once and keeps is no leak
  }
  const resources before = held_now();
  try_one_trainer(device, fault_name, faults, expected, which);
  BOOST_TEST((held_now() == before), "leaks: " << before << " before, " << held_now() << " after");
}

/// All uses of a call of the driver fail, as on a device that is full.
struct failing_call final : penstock::fault_injector {
  std::string name;
  std::atomic<int> failed{0};

  explicit failing_call(std::string call) : name(std::move(call)) {}
  fault before(fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != fault_site::cuda_call || what != name) return {};
    ++failed;
    return {.error = 2};  // cudaErrorMemoryAllocation
  }
};

bool has_right_bits(const outcome& how) { return how.name == "right bits"; }

const auto every_device = data::make(devices());

}  // namespace

BOOST_AUTO_TEST_SUITE(training_faults, *boost::unit_test::timeout(600))

BOOST_DATA_TEST_CASE(a_read_that_fails_while_training_is_an_error_and_the_trainer_goes_on_from_its_checkpoint,
                     every_device, name) {
  try_training(
      name, "EIO", std::make_shared<nth_use>(fault_site::read_file, fault{.error = EIO}),
      [](const outcome& how) { return how.name == "pipeline::error (read)" && how.says("Input/output error"); });
  try_training(name, "short read", std::make_shared<nth_use>(fault_site::read_file, fault{.at_most = 3}),
               has_right_bits);
}

BOOST_DATA_TEST_CASE(a_call_of_the_driver_that_fails_while_training_is_an_error_and_so_does_it, every_device, name) {
  constexpr int launch_failure = 719;  // cudaErrorLaunchFailure
  const auto fails = [&] { return std::make_shared<nth_use>(fault_site::cuda_call, fault{.error = launch_failure}); };
  const auto has_its_place = [](const outcome& how) {
    if (has_right_bits(how)) return true;  // asked again, or an event that nobody needs
    return how.name.starts_with("pipeline::error (") && how.says("cuda") && how.says(" rows ") &&
           how.says(" of epoch 0") && how.says("/x of ") && how.says("data.h5");
  };
  try_training(name, "a CUDA call fails in an epoch", fails(), has_its_place, uses::of_epoch);
  try_training(name, "a CUDA call fails", fails(), [&](const outcome& how) {
    return (how.name == "gpu::error, not in an epoch" && how.says("cuda")) || has_its_place(how);
  });
}

// The first step is done before it is recorded: were the error told, the step would be done twice.
BOOST_AUTO_TEST_CASE(a_step_that_cannot_be_recorded_is_done_all_the_same_and_once, on_gpu()) {
  const std::string name = gpu::device::cuda(0).name();
  const std::vector<std::string> recording{"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphGetRootNodes",
                                           "cudaGraphInstantiateWithFlags"};
  constexpr int out_of_memory = 2;  // cudaErrorMemoryAllocation
  try_training(name, "recording a step fails",
               std::make_shared<nth_use>(fault_site::cuda_call, fault{.error = out_of_memory}, recording),
               has_right_bits);
  const training_file file(600);
  run_under_faults undisturbed(file, name, {});
  const auto checkpoint = file.path("c.h5");
  undisturbed.trainer.save(checkpoint);
  const auto bits = undisturbed.epoch_from(checkpoint);
  for (const std::string& call : recording) {
    const auto faults = std::make_shared<failing_call>(call);
    run_under_faults run(file, name, faults);
    BOOST_TEST((run.epoch_from(checkpoint) == bits), call);
    BOOST_TEST(faults->failed == 3, call << " failed " << faults->failed << " times");
  }
}

BOOST_DATA_TEST_CASE(memory_that_is_refused_to_a_trainer_is_an_error_that_names_it, every_device, name) {
  const training_file file(600);
  const auto refused = [&](fault_site site, const char* slab, const char* error) {
    const auto faults = std::make_shared<nth_use>(site, fault{.error = name == "host" ? ENOMEM : 2});
    try_positions({.stage = "training",
                   .fault = std::string("refused: ") + slab,
                   .on = name,
                   .run =
                       [&](std::int64_t n) {
                         faults->arm(n);
                         const outcome how = outcome_of([&] {
                           run_under_faults(file, name, faults);
                           return "built";
                         });
                         faults->disarm();
                         return how;
                       },
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected = [&](const outcome& how) { return how.name == error && how.says(slab); },
                   .afterwards = [&] { run_under_faults(file, name, faults); }});
  };
  refused(fault_site::allocate_device, "device slab", "gpu::error");
  if (name != "host") refused(fault_site::allocate_pinned, "pinned slab", "gpu::error");
  refused(fault_site::allocate_host, "host memory", "io::error");
}

BOOST_AUTO_TEST_SUITE_END()
