#include <penstock/train/memory_use.hpp>

#include "training_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>

using namespace penstock;
using gpu::memory_kind;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;
using train::memory_category;

namespace {

const train::memory_use& find(const train::memory_snapshot& snapshot, memory_category category, memory_kind kind) {
  const auto there = std::find_if(snapshot.uses.begin(), snapshot.uses.end(),
                                  [&](const auto& use) { return use.category == category && use.kind == kind; });
  BOOST_TEST_REQUIRE((there != snapshot.uses.end()));
  return *there;
}

}  // namespace

/// What allocations asked the system for.
struct seen_bytes final : fault_injector {
  std::atomic<std::size_t> device{0}, pinned{0};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t bytes) override {
    if (site == fault_site::allocate_device) device += bytes;
    if (site == fault_site::allocate_pinned) pinned += bytes;
    return {};
  }
};

BOOST_AUTO_TEST_SUITE(memory_use)

BOOST_AUTO_TEST_CASE(what_is_allocated_by_category_is_what_the_system_was_asked_for) {
  const training_file data;
  auto options = small_trainer();
  options.stage.offload = {.optimizer = true, .activations = true};
  options.stage.model.hidden = std::vector<std::size_t>(6, 24);
  const auto seen = std::make_shared<seen_bytes>();
  training_run run(data, options, gpu::device::host(), seen);
  const auto before = run.trainer.memory();
  BOOST_TEST(before.allocated(memory_kind::device) == seen->device);
  BOOST_TEST(before.allocated(memory_kind::pinned) == seen->pinned);
  BOOST_TEST(before.allocated(memory_kind::host) == 0u);
  BOOST_TEST(seen->device > 0u);
  BOOST_TEST(seen->pinned > 0u);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.evaluate(*run.planned.testing);
  const auto after = run.trainer.memory();
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    const std::size_t asked_for = kind == memory_kind::device ? seen->device : seen->pinned;
    BOOST_TEST(after.allocated(kind) == asked_for);
    BOOST_TEST(after.peak(kind) <= asked_for);
  }
}

BOOST_AUTO_TEST_CASE(what_is_planned_by_category_adds_up_to_the_plan) {
  const training_file data;
  auto options = small_trainer();
  options.stage.offload.optimizer = true;
  options.stage.clip_norm = 1;
  options.stage.precision = train::precision::bf16;
  training_run run(data, options);
  const auto snapshot = run.trainer.memory();
  for (const memory_kind kind : gpu::memory_kinds)
    BOOST_TEST(snapshot.planned(kind) == run.planned.memory->items().total(kind));
  // 12 x 24 + 24 and 24 x 4 + 4 parameters: 412 of 4 bytes, and of 2 rounded, each in whole units of 512.
  BOOST_TEST(find(snapshot, memory_category::parameters, memory_kind::device).planned_bytes == 2048u + 1024u);
  BOOST_TEST(find(snapshot, memory_category::gradients, memory_kind::device).planned_bytes == 2048u);
  BOOST_TEST(find(snapshot, memory_category::optimizer, memory_kind::pinned).planned_bytes == 2u * 2048u);
  for (const auto& item : run.planned.memory->items().items())
    BOOST_TEST((train::category_of(item.name) != memory_category::model), item.name << " is in no category");
}

BOOST_AUTO_TEST_CASE(activations_and_pipelines_are_used_as_batches_come) {
  const training_file data;
  training_run run(data, small_trainer());
  const auto before = run.trainer.memory();
  BOOST_TEST(find(before, memory_category::activations, memory_kind::device).used_bytes == 0u);
  BOOST_TEST(find(before, memory_category::pipeline, memory_kind::device).used_bytes == 0u);
  BOOST_TEST(find(before, memory_category::parameters, memory_kind::device).used_bytes == 2048u);
  std::size_t within = 0;
  run.trainer.train_epoch(run.planned.training, {}, [&](const auto&) {
    within = find(run.trainer.memory(), memory_category::pipeline, memory_kind::device).used_bytes;
  });
  BOOST_TEST(within == run.planned.training.plan().ledger.total(memory_kind::device));
  const auto after = run.trainer.memory();
  const auto& activations = find(after, memory_category::activations, memory_kind::device);
  BOOST_TEST(activations.used_bytes == activations.allocated_bytes);
  BOOST_TEST(after.process_bytes > 0u);
  BOOST_TEST(after.process_peak_bytes >= after.process_bytes);
}

BOOST_AUTO_TEST_CASE(a_short_batch_uses_its_share_of_what_grows_with_rows) {
  gpu::ledger planned;
  planned.add(memory_kind::device, "train: activations of layer 0", 64 * 1024);
  planned.add(memory_kind::device, "a model's own", 100);
  const gpu::memory memory(gpu::device::host(), planned);
  train::memory_monitor monitor(memory, 64);
  monitor.batch(16);
  auto snapshot = monitor.now();
  BOOST_TEST(snapshot.used(memory_kind::device) == 16u * 1024u + 512u);
  monitor.batch(64);
  monitor.batch(1);
  snapshot = monitor.now();
  BOOST_TEST(snapshot.used(memory_kind::device) == 1024u + 512u);
  BOOST_TEST(snapshot.peak(memory_kind::device) == 64u * 1024u + 512u);
  BOOST_TEST(find(snapshot, memory_category::model, memory_kind::device).planned_bytes == 512u);
}

BOOST_AUTO_TEST_SUITE_END()
