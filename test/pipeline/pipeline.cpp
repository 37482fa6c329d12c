#include "small_file.hpp"

#include "../support/gpu.hpp"

#include <penstock/io/error.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <stdexcept>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

struct layout {
  std::uint64_t chunk_rows;
  int level;
  friend std::ostream& operator<<(std::ostream& out, const layout& l) { return out << l.chunk_rows << "/" << l.level; }
};
const auto layouts = data::make(std::vector<layout>{{0, -1}, {100, -1}, {64, 4}, {700, 1}});

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::uint64_t> counted(std::uint64_t rows) {
  std::vector<std::uint64_t> all(rows);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(whole_pipeline)

// Cases "on every device" run on the host alone where there is no GPU: this one says so, and fails where one is
// required.
BOOST_AUTO_TEST_CASE(a_gpu_is_among_the_devices_of_these_cases, penstock::test::on_gpu()) {
  BOOST_TEST(penstock::test::devices().front() == penstock::test::first_gpu().name());
}

BOOST_DATA_TEST_CASE(sequential_epochs_give_every_row_as_it_lies, every_device* layouts, name, how) {
  const small_file file(3001, how.chunk_rows, how.level);
  auto pipeline = (pp::read(file.all()) | pp::batched({.rows = 48})).build(gpu::device::parse(name), small);
  auto rows = consume(pipeline, 0, 2);
  auto expected = counted(3001);
  expected.insert(expected.end(), expected.begin(), expected.begin() + 3001);
  BOOST_TEST(rows == expected);
}

BOOST_DATA_TEST_CASE(shuffled_epochs_give_every_row_once_and_in_an_order_of_their_own, every_device* layouts, name,
                     how) {
  const small_file file(3001, how.chunk_rows, how.level);
  const pp::shuffled order{.seed = 5, .run_rows = 32, .pool_rows = 500};
  auto pipeline = (pp::read(file.all(), order) | pp::batched({.rows = 48})).build(gpu::device::parse(name), small);
  const auto first = consume(pipeline, 0, 1), second = consume(pipeline, 1, 1);
  BOOST_TEST(sorted(first) == counted(3001));
  BOOST_TEST(sorted(second) == counted(3001));
  BOOST_TEST(first != second);
  auto both = first;
  both.insert(both.end(), second.begin(), second.end());
  BOOST_TEST(consume(pipeline, 0, 2) == both);
}

BOOST_DATA_TEST_CASE(budgets_threads_and_blocks_do_not_change_the_order, every_device, name) {
  const small_file file(5003, 128, 2);
  const auto rows_with = [&](gpu::budget limits, pp::transport_options how) {
    auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 9, .run_rows = 64, .pool_rows = 1024}) |
                     pp::batched({.rows = 100}) | pp::transport(how))
                        .build(gpu::device::parse(name), limits);
    return consume(pipeline, 3, 1);
  };
  const auto rows = rows_with({}, {});
  BOOST_TEST(rows_with(small, {}) == rows);
  BOOST_TEST(rows_with(small, {.block_bytes = 10000, .threads = 1}) == rows);
  BOOST_TEST(rows_with({}, {.block_bytes = 50000, .slots = 40, .threads = 3}) == rows);
}

BOOST_DATA_TEST_CASE(batches_of_any_size_give_the_same_rows,
                     every_device* data::make({1, 7, 64, 1000, 2999, 3001, 4000}), name, batch_rows) {
  const small_file file(3001, 100);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = static_cast<std::size_t>(batch_rows)}))
                      .build(gpu::device::parse(name), {});
  BOOST_TEST(consume(pipeline, 0, 1) == counted(3001));
  BOOST_TEST(pipeline.batches_per_epoch() == (3001u + batch_rows - 1) / batch_rows);
}

BOOST_DATA_TEST_CASE(a_run_that_starts_at_any_batch_gives_the_rows_of_one_that_was_not_stopped,
                     every_device* data::make({false, true}), name, shuffle) {
  const small_file file(700, 64);
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 2, .run_rows = 16, .pool_rows = 200}) : pp::sequential{};
  auto pipeline = (pp::read(file.plain(), order) | pp::batched({.rows = 32})).build(gpu::device::parse(name), small);
  const auto whole = consume(pipeline, 4, 2);
  for (std::uint64_t batch = 0; batch <= pipeline.batches_per_epoch(); ++batch) {
    const auto rest = consume(pipeline, 4, 2, {.first_batch = batch});
    const auto skipped = std::min<std::size_t>(batch * 32, 700);
    BOOST_TEST(rest == std::vector<std::uint64_t>(whole.begin() + static_cast<std::ptrdiff_t>(skipped), whole.end()));
  }
}

BOOST_DATA_TEST_CASE(a_run_that_cannot_begin_leaves_the_one_in_hand_alone, every_device, name) {
  const small_file file(700, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32})).build(gpu::device::parse(name), small);
  auto range = pipeline.epochs(0, 1);
  std::vector<std::uint64_t> rows;
  penstock::test::check(range.next(), rows);
  const gpu::stream_ref elsewhere(std::bit_cast<gpu::device>(7), nullptr);  // cuda:7, which need not be there
  BOOST_CHECK_THROW(pipeline.epochs(1, 1, {.stream = elsewhere}), std::invalid_argument);
  BOOST_CHECK_EXCEPTION(pipeline.epochs(1, 1, {.first_batch = 23}), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()) == "a run cannot begin at batch 23: an epoch has 22";
  });
  for (pp::batch next = range.next(); next; next = range.next()) penstock::test::check(next, rows);
  BOOST_TEST(rows == counted(700));
}

BOOST_DATA_TEST_CASE(push_gives_what_pull_gives, every_device, name) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 1}) | pp::batched({.rows = 30}))
                      .build(gpu::device::parse(name), small);
  std::vector<std::uint64_t> pushed;
  pipeline.run(0, 2, [&](pp::batch& batch) { penstock::test::check(batch, pushed); });
  BOOST_TEST(pushed == consume(pipeline, 0, 2));
}

BOOST_AUTO_TEST_CASE(a_source_without_rows_has_no_batches) {
  const small_file file(0);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 8})).build(gpu::device::host(), small);
  BOOST_TEST(consume(pipeline, 0, 3).empty());
  BOOST_TEST(pipeline.batches_per_epoch() == 0u);
}

BOOST_AUTO_TEST_CASE(fields_with_different_row_counts_are_refused_with_both_counts) {
  const small_file file(10), other(11);
  const auto source = file.plain().field("other", other.at("/label"));
  BOOST_CHECK_EXCEPTION((pp::read(source) | pp::batched({})).open(), penstock::io::error, [](const std::exception& e) {
    const std::string text = e.what();
    return text.find("'wide' has 10 rows") != std::string::npos && text.find("'other' has 11") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(more_readers_or_slots_than_could_help_are_refused) {
  const small_file file(100, 64);
  BOOST_CHECK_EXCEPTION(
      pp::read(file.plain()) | pp::transport({.threads = std::size_t{1} << 63}), std::invalid_argument,
      [](const auto& e) { return std::string(e.what()).find("at most 65536 blocks") != std::string::npos; });
  BOOST_CHECK_EXCEPTION(
      pp::read(file.plain()) | pp::transport({.slots = std::size_t{1} << 56}), std::invalid_argument,
      [](const auto& e) { return std::string(e.what()).find("at most 16777216 blocks") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(a_budget_too_small_is_refused_before_anything_is_allocated) {
  const small_file file(1000);
  BOOST_CHECK_THROW(
      (pp::read(file.plain()) | pp::batched({.rows = 512})).build(gpu::device::host(), {.device_bytes = 64_KiB}),
      gpu::budget_error);
}

BOOST_AUTO_TEST_CASE(the_report_counts_what_was_consumed) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 100})).build(gpu::device::host(), small);
  consume(pipeline, 0, 3);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST(report.epochs == 3u);
  BOOST_TEST(report.batches == 30u);
  BOOST_TEST(report.rows == 3000u);
  BOOST_TEST(report.bytes == 3000u * (33 * 4 + 4));
  BOOST_TEST(report.stages.front().bytes == report.bytes);
  double charged = 0;
  for (const auto& charge : report.consumer_waits) charged += charge.seconds;
  BOOST_TEST(charged == report.consumer_wait_seconds, boost::test_tools::tolerance(0.02));
  BOOST_TEST(report.consumer_wait_seconds <= report.seconds);
  BOOST_TEST(to_text(report).find("bottleneck") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_batch_can_look_up_and_leave) {
  const small_file file(100);
  std::latch go(1);
  auto pipeline =
      (pp::read(file.plain()) | pp::transform_host({.name = "stall"}, [&](const pp::block&) { go.wait(); }) |
       pp::batched({.rows = 50}))
          .build(gpu::device::host(), small);
  int calls = 0;
  const auto look_up = [&] {
    if (++calls == 2) throw std::runtime_error("interrupted");
    if (calls == 3) throw gpu::error("of the caller's own");
    if (calls == 4) go.count_down();
  };
  auto range = pipeline.epochs(0, 1, {.while_waiting = look_up});
  BOOST_CHECK_THROW(range.next(), std::runtime_error);
  BOOST_CHECK_EXCEPTION(range.next(), gpu::error,
                        [](const auto& e) { return std::string(e.what()) == "of the caller's own"; });
  BOOST_TEST(range.next().index() == 0u);  // the run went on
  BOOST_TEST(range.next().index() == 1u);
  BOOST_TEST(calls == 4);
  BOOST_TEST(pipeline.report().failures == 0u);
}

BOOST_DATA_TEST_CASE(the_next_epoch_is_read_while_the_last_batch_of_this_one_is_held, every_device, name) {
  const small_file file(200, 64);
  std::promise<void> read_ahead;
  std::once_flag told;
  auto pipeline = (pp::read(file.all()) |
                   pp::transform_host({.name = "note"},
                                      [&](const pp::block& block) {
                                        if (block.epoch() == 1) std::call_once(told, [&] { read_ahead.set_value(); });
                                      }) |
                   pp::batched({.rows = 100}))
                      .build(gpu::device::parse(name), small);
  auto range = pipeline.epochs(0, 2);
  range.next().release();
  const pp::batch last = range.next();
  BOOST_TEST(last.epoch() == 0u);
  BOOST_TEST(last.index() == 1u);
  const auto known = read_ahead.get_future().wait_for(std::chrono::seconds(30));  // not for ever, where it is not
  BOOST_TEST((known == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(the_report_knows_the_time_of_a_run_in_progress) {
  const small_file file(100);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 50})).build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1);
  range.next();
  BOOST_TEST(pipeline.report().seconds > 0);
}

BOOST_AUTO_TEST_SUITE_END()
