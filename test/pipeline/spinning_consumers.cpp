// What goes on beside a consumer's kernel, and what waits for it, proven with kernels that spin until the host opens a
// gate: what happens while a gate is shut happens beside the kernel.
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include "../gpu/spin.hpp"
#include "../support/gpu.hpp"
#include "spin_stage.hpp"

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_file;
using penstock::test::spin_stage;

namespace {

/// A batch's first row: where its fields lie, and its number, of which its values are made.
struct first_row {
  explicit first_row(const pp::batch& batch)
      : label(batch.field<std::int32_t>("label")), wide(batch.field<float>("wide")), number(batch.row_ids().front()) {}

  bool arrives(const spin_stage& s, gpu::stream_ref probe) const {
    return s.comes_to(probe, label, static_cast<std::int32_t>(number)) &&
           s.comes_to(probe, wide, static_cast<float>(number * 33));
  }
  bool is_there(const spin_stage& s, gpu::stream_ref probe) const {
    return s.peek(probe, label) == static_cast<std::int32_t>(number) &&
           s.peek(probe, wide) == static_cast<float>(number * 33);
  }

  const std::int32_t* label;
  const float* wide;
  std::uint64_t number;
};

pp::pipeline build(const small_file& file, gpu::device d, bool shuffle) {
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 2048}) : pp::sequential{};
  return (pp::read(file.plain(), order) | pp::batched({.rows = 64}))
      .build(d, {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
}

/// An epoch before the test: CUDA loads a kernel at its first launch, for which it may wait until others have ended.
void warm_up(pp::pipeline& pipeline, gpu::stream_ref stream) {
  std::uint64_t rows = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 1, {.stream = stream})) rows += batch.rows();
  stream.synchronize();
  BOOST_REQUIRE_EQUAL(rows, 20000u);
}

/// Two epochs, from a batch on, so that no row lies where the epoch before left it.
pp::epoch_range run_after_warm_up(pp::pipeline& pipeline, gpu::stream_ref stream) {
  return pipeline.epochs(0, 2, {.stream = stream, .first_batch = 5});
}

/// Takes and releases batches, which the consumer does nothing with, until one lies where `first` does; returns it. The
/// ring's first lap is noted.
pp::batch go_round(pp::epoch_range& range, const first_row& first, std::vector<first_row>& lap) {
  pp::batch next = range.next();
  for (; next.view("label").data != reinterpret_cast<const std::byte*>(first.label); next = range.next())
    lap.emplace_back(next);
  return next;
}

void show_overlap_with_a_kernel(bool shuffle) {
  const auto d = test::first_gpu();
  const small_file file(20000, 64);
  auto pipeline = build(file, d, shuffle);
  const gpu::stream mine(d), probe(d);
  warm_up(pipeline, mine);
  const spin_stage s(d);
  auto range = run_after_warm_up(pipeline, mine);
  pp::batch batch = range.next();
  const first_row first(batch);
  BOOST_REQUIRE(first.arrives(s, probe));
  test::spin_until(mine, s.gate(), s.mark(), 42);  // the consumer's kernel on the first batch
  batch.release();                                 // in the order of its stream: once the kernel has ended

  std::vector<first_row> lap;
  batch = go_round(range, first, lap);
  const first_row again(batch);
  gpu::event at_mine(d);
  at_mine.record(mine);
  std::size_t late = 0;
  for (const first_row& row : lap) late += row.arrives(s, probe) ? 0 : 1;
  BOOST_TEST(late == 0u);  // read, copied and put out, beside the kernel
  BOOST_TEST(lap.size() > 100u);
  BOOST_TEST(first.is_there(s, probe));  // the next lap's first rows are issued, and wait for the kernel
  BOOST_TEST(!at_mine.done());
  s.open();
  at_mine.synchronize();
  BOOST_TEST(s.peek(probe, s.mark()) == 42u);
  BOOST_TEST(again.is_there(s, probe));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spinning_consumers, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(rows_are_copied_beside_a_consumers_kernel_but_not_over_rows_that_it_uses, test::on_gpu()) {
  show_overlap_with_a_kernel(false);
}

BOOST_AUTO_TEST_CASE(rows_are_drawn_from_the_pool_beside_a_consumers_kernel_too, test::on_gpu()) {
  show_overlap_with_a_kernel(true);
}

BOOST_AUTO_TEST_CASE(rows_return_after_every_stream_that_used_them_and_hold_up_no_other, test::on_gpu()) {
  const auto d = test::first_gpu();
  const small_file file(20000, 64);
  auto pipeline = build(file, d, false);
  const gpu::stream mine(d), second(d), third(d), probe(d);
  warm_up(pipeline, mine);
  const spin_stage a(d), b(d);
  auto range = run_after_warm_up(pipeline, mine);
  pp::batch batch = range.next();
  const first_row first(batch);
  BOOST_REQUIRE(first.arrives(a, probe));
  batch.used_on(second);
  batch.used_on(third);
  test::spin_until(second, a.gate(), a.mark(), 1);
  test::spin_until(third, b.gate(), b.mark(), 2);
  gpu::event at_next(d), at_second(d), at_mine(d);
  batch = range.next();
  at_next.record(mine);
  at_next.synchronize();  // the consumer's own stream goes on: the other two hold the first batch alone
  BOOST_TEST(first_row(batch).is_there(a, probe));
  batch.release();

  std::vector<first_row> lap;
  batch = go_round(range, first, lap);
  const first_row again(batch);
  at_mine.record(mine);
  std::size_t late = 0;
  for (const first_row& row : lap) late += row.arrives(a, probe) ? 0 : 1;
  BOOST_TEST(late == 0u);
  BOOST_TEST(first.is_there(a, probe));
  at_second.record(second);
  a.open();
  at_second.synchronize();
  BOOST_TEST(first.is_there(a, probe));  // the third stream still uses it
  BOOST_TEST(!at_mine.done());
  b.open();
  at_mine.synchronize();
  BOOST_TEST(a.peek(probe, b.mark()) == 2u);
  BOOST_TEST(again.is_there(a, probe));
}

// The next run's rows may not be written before another stream's kernel of this one has ended. The consumer's stream
// then waits on the device, and its host does not: that is the stall which the report times with events.
BOOST_AUTO_TEST_CASE(a_copy_that_a_kernel_makes_late_is_a_stall_of_the_device_in_the_report, test::on_gpu()) {
  using seconds = std::chrono::duration<double>;
  const auto d = test::first_gpu();
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::transport({.block_bytes = 1_MiB, .slots = 4, .threads = 2}) |
                   pp::batched({.rows = 1000}))
                      .build(d, {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
  BOOST_REQUIRE_EQUAL(pipeline.plan().block_rows, 1000u);  // so that a run waits once: the first two waits are sampled
  const gpu::stream mine(d), other(d);
  const spin_stage s(d);
  for (pp::batch& batch : pipeline.epochs(0, 1, {.stream = mine.ref()})) {
    mine.synchronize();
    batch.used_on(other);
    test::spin_until(other, s.gate(), s.mark(), 42);
  }
  const pp::device_stall_report before = pipeline.report().device_stall;
  BOOST_TEST(before.waits == 1u);

  const auto asked = std::chrono::steady_clock::now();
  auto range = pipeline.epochs(1, 1, {.stream = mine.ref()});
  const pp::batch batch = range.next();
  const first_row row(batch);
  gpu::event at_mine(d);
  at_mine.record(mine);
  BOOST_TEST(!at_mine.done());
  const auto given = std::chrono::steady_clock::now();
  while (seconds(std::chrono::steady_clock::now() - given).count() < 0.1) {  // the length of the stall
  }
  BOOST_TEST(!at_mine.done());
  s.open();
  at_mine.synchronize();
  const double most = seconds(std::chrono::steady_clock::now() - asked).count();
  BOOST_TEST(row.is_there(s, other));
  const pp::device_stall_report after = pipeline.report().device_stall;
  BOOST_TEST(after.waits == 2u);
  BOOST_TEST(after.samples == 2u);
  BOOST_TEST(after.seconds - before.seconds >= 0.09);
  BOOST_TEST(after.seconds - before.seconds <= most * 1.01);
}

BOOST_AUTO_TEST_SUITE_END()
