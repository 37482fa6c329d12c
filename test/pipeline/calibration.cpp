#include <penstock/pipeline/calibration.hpp>

#include "small_file.hpp"

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <mutex>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

constexpr std::size_t row_bytes = 33 * 4 + 3 * 4 + 4;
constexpr std::uint64_t rows = 60'000;  // 8.5 MiB: several sizes of blocks suit it
const gpu::budget enough{.device_bytes = 256_MiB, .pinned_bytes = 256_MiB, .host_bytes = 64_MiB};

const auto every_device = data::make(penstock::test::devices());
const auto orders = data::make(std::vector<int>{0, 1, 2});
pp::order_options order_number(int n) {
  if (n == 0) return pp::sequential{};
  if (n == 1) return pp::shuffled{.seed = 3, .run_rows = 64, .pool_rows = 20'000};
  return pp::shuffled{.seed = 4, .run_rows = 1000, .pool_rows = 1000};
}

pp::description described(const small_file& file, const pp::order_options& how) {
  return pp::read(file.all(), how) | pp::batched({.rows = 500});
}

/// What a file or the memory is asked for; reads may fail or take longer.
class watched_world : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (site == penstock::fault_site::allocate_device) most_device = std::max(most_device, bytes);
    if (site == penstock::fault_site::allocate_pinned) most_pinned = std::max(most_pinned, bytes);
    if (site != penstock::fault_site::read_file) return {};
    ++reads;
    return {.error = error, .delay = delay};
  }
  std::uint64_t reads = 0;
  std::size_t most_device = 0, most_pinned = 0;
  int error = 0;
  std::chrono::milliseconds delay{0};

 private:
  std::mutex mutex_;
};

/// By hand: the first, from small to large, that is no more than 3 % slower than the fastest.
std::size_t number_of_best(const std::vector<pp::calibration::tried>& some) {
  double most = 0;
  for (const auto& one : some) most = std::max(most, one.bytes_per_second);
  std::size_t n = 0;
  while (some.at(n).bytes_per_second < 0.97 * most) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(calibrations, *boost::unit_test::timeout(300))

BOOST_DATA_TEST_CASE(rows_and_their_order_are_the_same_with_what_was_measured, every_device* orders, name, how) {
  const small_file file(rows, 64);
  const gpu::device device = gpu::device::parse(name);
  const auto what = described(file, order_number(how));
  const pp::calibration found = pp::calibrate(what, device, enough);
  BOOST_TEST_MESSAGE(to_text(found));
  auto plain = what.build(device, enough);
  auto calibrated = (what | found).build(device, enough);
  BOOST_TEST((consume(calibrated, 0, 1) == consume(plain, 0, 1)));  // values, too, are checked
}

BOOST_DATA_TEST_CASE(the_smallest_of_the_fast_is_taken_and_plan_and_report_say_so, every_device, name) {
  const small_file file(rows, 64);
  const gpu::device device = gpu::device::parse(name);
  const auto what = described(file, pp::sequential{});
  const auto own = what.open().plan(device, enough);
  // A second is enough, unless many others want the processors, too.
  pp::calibration found;
  for (double seconds = 1; found.blocks.size() < 2 && seconds < 300; seconds *= 4)
    found = pp::calibrate(what, device, enough, {}, {.seconds = seconds});
  BOOST_REQUIRE_GE(found.blocks.size(), 2u);
  for (std::size_t n = 1; n < found.blocks.size(); ++n)
    BOOST_TEST(found.blocks[n - 1].block_bytes < found.blocks[n].block_bytes);
  const auto& best = found.blocks[number_of_best(found.blocks)];
  const auto plan = (what | found).open().plan(device, enough);
  BOOST_TEST(plan.block_rows * row_bytes == best.block_bytes);
  BOOST_TEST(found.transport.threads == 0u);
  if (best.block_bytes == own.block_rows * row_bytes) BOOST_TEST(found.transport.block_bytes == 0u);
  BOOST_TEST(plan.choices.at(0).find(": measured: ") != std::string::npos);
  if (!found.slots.empty()) {
    const auto& slots = found.slots[number_of_best(found.slots)];
    BOOST_TEST(plan.slots == slots.slots);
    BOOST_TEST(plan.slots * plan.slot_bytes == slots.slots_bytes);
    BOOST_TEST(plan.choices.at(1).find(": measured: ") != std::string::npos);
  }
  auto pipeline = (what | found).build(device, enough);
  consume(pipeline, 0, 1);
  BOOST_TEST(pipeline.report().choices.at(0) == plan.choices.at(0));
  const auto asked = (what | found | pp::transport({.block_bytes = 64_KiB})).open().plan(device, enough);
  BOOST_TEST(asked.choices.at(0).find("as asked for") != std::string::npos);
}

BOOST_DATA_TEST_CASE(what_is_fixed_stays_and_is_not_tried, every_device, name) {
  const small_file file(rows, 64);
  const gpu::device device = gpu::device::parse(name);
  const auto world = std::make_shared<watched_world>();
  const auto what = described(file, pp::sequential{}) | penstock::fault_seam(world);
  const pp::transport_options wish{.block_bytes = 300'000, .slots = 5, .threads = 2};
  const pp::calibration none = pp::calibrate(what | pp::transport(wish), device, enough);
  BOOST_TEST(world->reads == 0u);
  BOOST_TEST(none.transport.block_bytes == 300'000u);
  BOOST_TEST(none.transport.slots == 5u);
  BOOST_TEST(none.transport.threads == 2u);
  BOOST_TEST((none.blocks.empty() && none.slots.empty()));
  BOOST_TEST(none.block_reason == "as asked for");
  const auto plan = (what | none).open().plan(device, enough);
  BOOST_TEST(plan.choices.at(0).find("as asked for") != std::string::npos);

  const auto half = what | pp::transport({.block_bytes = 300'000});
  const pp::calibration one = pp::calibrate(half, device, enough);
  const std::size_t block_bytes = half.open().plan(device, enough).block_rows * row_bytes;
  BOOST_TEST(one.transport.block_bytes == 300'000u);
  BOOST_TEST(one.blocks.empty());
  for (const auto& tried : one.slots) BOOST_TEST(tried.block_bytes == block_bytes);
}

BOOST_DATA_TEST_CASE(tries_stay_within_what_others_leave_of_the_budget, every_device* orders, name, how) {
  const small_file file(rows, 64);
  const gpu::device device = gpu::device::parse(name);
  const auto world = std::make_shared<watched_world>();
  const auto what = described(file, order_number(how)) | penstock::fault_seam(world);
  gpu::ledger taken;
  taken.add(gpu::memory_kind::device, "model", 5_MiB);
  taken.add(gpu::memory_kind::pinned, "moments", 3_MiB);
  const gpu::budget limits{.device_bytes = 20_MiB, .pinned_bytes = 10_MiB, .host_bytes = 64_MiB};
  const pp::calibration found = pp::calibrate(what, device, limits, taken);
  BOOST_TEST(world->most_device <= 15_MiB);
  BOOST_TEST(world->most_pinned <= 7_MiB);
  const auto plan = (what | found).open().plan(device, limits, taken);  // what was chosen fits
  BOOST_TEST(plan.ledger.total(gpu::memory_kind::device) <= 15_MiB);

  const gpu::budget too_small{.device_bytes = 5_MiB, .pinned_bytes = 3_MiB, .host_bytes = 64_MiB};
  BOOST_CHECK_THROW(pp::calibrate(what, device, too_small, taken), gpu::budget_error);
}

BOOST_DATA_TEST_CASE(small_files_are_read_again_and_again_and_tiny_ones_leave_nothing_to_choose, every_device, name) {
  const gpu::device device = gpu::device::parse(name);
  const small_file few(10'000, 64), tiny(40, 16), empty(0);
  for (const int how : {0, 1, 2}) {
    const auto what = described(few, order_number(how));
    auto pipeline = (what | pp::calibrate(what, device, enough)).build(device, enough);
    BOOST_TEST(consume(pipeline, 0, 1).size() == 10'000u);
  }
  const auto of_tiny = pp::calibrate(described(tiny, pp::sequential{}), device, enough);
  BOOST_TEST((of_tiny.blocks.empty() && of_tiny.transport.block_bytes == 0));
  BOOST_TEST(of_tiny.block_reason == "no other size suits rows, chunks, pool and budgets");
  const auto of_none = pp::calibrate(described(empty, pp::sequential{}), device, enough);
  BOOST_TEST(of_none.block_reason == "not measured: an epoch has no rows");
  const auto dropped = pp::read(tiny.all()) | pp::batched({.rows = 500, .last = pp::last_batch::drop});
  BOOST_TEST(pp::calibrate(dropped, device, enough).block_reason == "not measured: an epoch has no rows");
  const auto shard = pp::read(tiny.all()) | pp::batched({.rows = 16, .last = pp::last_batch::pad}) |
                     pp::sharded({.shards = 64, .rank = 63});
  BOOST_TEST(pp::calibrate(shard, device, enough).block_reason == "not measured: an epoch has no rows");
}

BOOST_DATA_TEST_CASE(storage_that_is_too_slow_for_a_choice_leaves_the_plans_own, every_device, name) {
  const small_file file(rows, 64);
  const auto world = std::make_shared<watched_world>();
  world->delay = std::chrono::milliseconds(200);  // four times what a size is tried for
  const auto what = described(file, pp::sequential{}) | penstock::fault_seam(world);
  const pp::calibration found = pp::calibrate(what, gpu::device::parse(name), enough);
  BOOST_TEST(found.blocks.empty());
  BOOST_TEST(found.transport.block_bytes == 0u);
  BOOST_TEST(found.block_reason.find("too slowly") != std::string::npos);
  BOOST_TEST((what | found).open().plan(gpu::device::parse(name), enough).choices.at(0).find("as near to") !=
             std::string::npos);
}

BOOST_DATA_TEST_CASE(errors_reach_the_caller_and_the_next_calibration_is_healthy, every_device, name) {
  const small_file file(rows, 64);
  const gpu::device device = gpu::device::parse(name);
  const auto world = std::make_shared<watched_world>();
  const auto what = described(file, pp::sequential{}) | penstock::fault_seam(world);
  world->error = EIO;
  BOOST_CHECK_EXCEPTION(pp::calibrate(what, device, enough), pp::error,
                        [](const pp::error& e) { return e.where().stage == "read"; });
  world->error = 0;
  BOOST_CHECK_NO_THROW(pp::calibrate(what, device, enough));
  const auto tired = [](const pp::block&) { throw std::runtime_error("the transform is tired"); };
  BOOST_CHECK_EXCEPTION(pp::calibrate(what | pp::transform_host({.name = "augment"}, tired), device, enough), pp::error,
                        [](const pp::error& e) { return e.where().stage == "augment"; });
}

BOOST_AUTO_TEST_CASE(a_time_that_is_none_is_refused) {
  const small_file file(100);
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e9})
    BOOST_CHECK_THROW(pp::calibrate(described(file, {}), gpu::device::host(), enough, {}, {.seconds = seconds}),
                      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
