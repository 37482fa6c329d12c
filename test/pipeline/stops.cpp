// Runs that end before their rows do: consumers that throw, stops, epochs that are left, and what outlives them.
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>

#include <atomic>
#include <latch>
#include <optional>
#include <stdexcept>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

struct tired_consumer : std::runtime_error {
  tired_consumer() : std::runtime_error("the consumer is tired") {}
};

/// Asks for a stop at one read of a file, and counts those after it.
class stop_at_read : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::read_file || left < 0) return {};
    if (left == 0)
      ++after;
    else if (--left == 0)
      stop.request_stop();
    return {};
  }
  std::stop_source stop;
  std::atomic<int> left{-1}, after{0};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stops, *boost::unit_test::timeout(300))

BOOST_DATA_TEST_CASE(a_consumer_that_throws_ends_the_run_and_gets_its_exception_back, every_device, name) {
  const small_file file(4000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 50})).build(gpu::device::parse(name), small);
  int batches = 0;
  BOOST_CHECK_THROW(pipeline.run(0, 3,
                                 [&](pp::batch&) {
                                   if (++batches == 7) throw tired_consumer();
                                 }),
                    tired_consumer);
  BOOST_TEST(batches == 7);
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 4000u);
}

BOOST_DATA_TEST_CASE(a_stop_token_ends_pull_and_push, every_device, name) {
  const small_file file(4000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 50})).build(gpu::device::parse(name), small);
  std::stop_source stop;
  int batches = 0;
  BOOST_CHECK_THROW(pipeline.run(0, 100,
                                 [&](pp::batch&) {
                                   if (++batches == 5) stop.request_stop();
                                 },
                                 {.stop = stop.get_token()}),
                    pp::stopped);
  BOOST_TEST(batches == 5);
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1, {.stop = stop.get_token()}),
                    pp::stopped);  // stopped before it began
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 4000u);
}

BOOST_DATA_TEST_CASE(a_stop_from_another_thread_wakes_a_consumer_that_waits, every_device, name) {
  const small_file file(500, 64);
  std::latch inside(1), go(1);
  std::stop_source stop;
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "stall"},
                                      [&](const pp::block&) {
                                        if (!inside.try_wait()) inside.count_down();
                                        go.wait();
                                      }) |
                   pp::transport({.slots = 2}) | pp::batched({.rows = 500}))
                      .build(gpu::device::parse(name), small);
  std::jthread stopper([&] {
    inside.wait();  // the transform stalls now, so the consumer cannot have its batch
    stop.request_stop();
    go.count_down();
  });
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1, {.stop = stop.get_token()}), pp::stopped);
}

BOOST_DATA_TEST_CASE(an_epoch_can_be_left_and_a_pipeline_destroyed_at_any_moment,
                     every_device* data::make({false, true}), name, shuffle) {
  const small_file file(3000, 64, 3);
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 4, .run_rows = 32, .pool_rows = 400}) : pp::sequential{};
  for (int leave = 0; leave < 70; leave += 3) {
    auto pipeline = (pp::read(file.all(), order) | pp::batched({.rows = 64})).build(gpu::device::parse(name), small);
    int seen = 0;
    for (pp::batch& batch : pipeline.epochs(0, 3)) {
      if (seen++ == leave) break;
      BOOST_REQUIRE(batch.valid_rows() > 0);
    }
    auto range = pipeline.epochs(1, 1);
    if (leave % 2) range.next().release();
  }
}

BOOST_DATA_TEST_CASE(an_epoch_left_early_costs_no_more_than_the_blocks_in_flight, every_device, name) {
  const small_file file(20000, 64);
  for (const int leave : {0, 1, 5, 20}) {
    auto pipeline =
        (pp::read(file.plain()) | pp::transport({.block_bytes = 4096, .slots = 3}) | pp::batched({.rows = 64}))
            .build(gpu::device::parse(name), small);
    int seen = 0;
    for (pp::batch& batch : pipeline.epochs(0, 1)) {
      BOOST_REQUIRE(batch.valid_rows() > 0);
      if (seen++ == leave) break;
    }
    const pp::pipeline_plan& plan = pipeline.plan();
    const auto blocks_of = [&](std::uint64_t rows) { return (rows + plan.block_rows - 1) / plan.block_rows + 1; };
    const std::uint64_t consumed = blocks_of(static_cast<std::uint64_t>(seen) * 64);
    const std::uint64_t in_flight = plan.slots + plan.images + blocks_of(plan.ring_rows);
    const auto report = pipeline.report();
    const auto& read = report.stages.front();
    BOOST_TEST(read.name == "read");
    BOOST_TEST(read.blocks <= consumed + in_flight);
    BOOST_TEST(read.blocks < blocks_of(pipeline.rows()) / 2);  // else it would show nothing
  }
}

// In random order a block is hundreds of reads. Where each decodes a chunk, that is seconds.
BOOST_AUTO_TEST_CASE(who_stops_does_not_wait_for_blocks_of_many_reads) {
  const small_file file(4000);  // not in chunks: each row is a read
  const auto reads = std::make_shared<stop_at_read>();
  auto pipeline = (pp::read(file.plain(), pp::random{.seed = 1}) | penstock::fault_seam(reads) |
                   pp::transport({.block_bytes = 64_KiB, .threads = 2}) | pp::batched({.rows = 50}))
                      .build(gpu::device::host(), small);
  BOOST_REQUIRE(pipeline.plan().block_rows > 300u);
  reads->left = 100;
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1, {.stop = reads->stop.get_token()}), pp::stopped);
  // What readers began until they heard of it; a block would be hundreds.
  BOOST_TEST(reads->after < 75);
  reads->left = -1;
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 4000u);
}

BOOST_DATA_TEST_CASE(a_range_of_a_run_that_was_replaced_gives_no_rows_of_another, every_device, name) {
  const small_file file(100);  // both epochs are in the ring before anything is consumed
  auto pipeline = (pp::read(file.plain(), pp::shuffled{.seed = 1}) | pp::batched({.rows = 10}))
                      .build(gpu::device::parse(name), small);
  auto first = pipeline.epochs(0, 1);
  first.next().release();
  auto second = pipeline.epochs(1, 1);
  BOOST_CHECK_EXCEPTION(first.next(), pp::error, [](const pp::error& e) {
    return std::string(e.what()).find("batch 1 of epoch 0 cannot be had any more") != std::string::npos;
  });
  { const auto ended = std::move(first); }  // and does not end the run that took its place
  std::vector<std::uint64_t> rows;
  while (const pp::batch batch = second.next()) penstock::test::check(batch, rows);
  BOOST_TEST(rows.size() == 100u);
}

BOOST_DATA_TEST_CASE(ranges_and_batches_may_outlive_their_pipeline, every_device, name) {
  const small_file file(3000, 64);
  std::optional<pp::pipeline> pipeline(
      (pp::read(file.plain()) | pp::batched({.rows = 64})).build(gpu::device::parse(name), small));
  auto replaced = pipeline->epochs(0, 1), range = pipeline->epochs(0, 2);
  pp::batch kept = range.next();
  pipeline.reset();
  std::vector<std::uint64_t> rows;
  if (kept.stream().device().is_host()) penstock::test::check(kept, rows);  // a device's stream went with the pipeline
  BOOST_CHECK_THROW(range.next(), pp::error);
  BOOST_CHECK_THROW(replaced.next(), pp::error);
  kept.release();
}

BOOST_AUTO_TEST_CASE(an_unused_range_and_an_unused_pipeline_are_no_burden) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 64})).build(gpu::device::host(), small);
  { auto unused = pipeline.epochs(0, 1); }
  auto moved = std::move(pipeline);
  BOOST_TEST(penstock::test::consume(moved, 0, 1).size() == 1000u);
}

BOOST_AUTO_TEST_SUITE_END()
