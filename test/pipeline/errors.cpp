#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/io/error.hpp>

#include <atomic>
#include <cerrno>
#include <latch>
#include <optional>
#include <set>
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

struct own_exception : std::runtime_error {
  own_exception() : std::runtime_error("the transform is tired") {}
};

/// Lets one read of a file fail, when told.
class failing_read : public penstock::fault_injector {
 public:
  explicit failing_read(int error) : error_(error) {}
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::read_file) return {};
    return {.error = left_.fetch_sub(1) == 0 ? error_ : 0};
  }
  /// The read after `reads` more fails.
  void fail_after(int reads) { left_ = reads; }

 private:
  std::atomic<int> left_{-1};
  int error_;
};

/// Lets one CUDA call of a name fail, or what the host does in its place.
class failing_call : public penstock::fault_injector {
 public:
  explicit failing_call(std::string name) : name_(std::move(name)) {}
  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::cuda_call || what != name_) return {};
    return {.error = left_.fetch_sub(1) == 0 ? 719 : 0};  // cudaErrorLaunchFailure
  }
  void fail_after(int calls) { left_ = calls; }

 private:
  std::string name_;
  std::atomic<int> left_{-1};
};

/// While it is broken, every CUDA call fails, or what the host does in its place.
class broken_device : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    return {.error = broken && site == penstock::fault_site::cuda_call ? 719 : 0};
  }
  std::atomic<bool> broken{false};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(errors, *boost::unit_test::timeout(300))

BOOST_DATA_TEST_CASE(a_host_transform_that_throws_ends_the_epoch_with_its_own_exception, every_device, name) {
  const small_file file(2000, 64);
  std::atomic<int> calls{0};
  std::atomic<bool> tired{true};
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "augment", .concurrency = 2},
                                      [&](const pp::block&) {
                                        if (tired && ++calls == 3) throw own_exception();
                                      }) |
                   pp::transport({.block_bytes = 8192}) | pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  try {
    penstock::test::consume(pipeline, 0, 5);
    BOOST_FAIL("the transform's exception must reach the consumer");
  } catch (const pp::error& e) {
    BOOST_TEST(e.where().stage == "augment");
    BOOST_TEST(e.where().count > 0u);
    BOOST_TEST(std::string(e.what()).find("the transform is tired") != std::string::npos);
    BOOST_TEST(std::string(e.what()).find("rows ") != std::string::npos);
    BOOST_TEST(e.where().file == file.path().string());
    BOOST_TEST(e.where().dataset == "/wide");
    BOOST_TEST(std::string(e.what()).find("/wide of " + file.path().string()) != std::string::npos, e.what());
    BOOST_CHECK_THROW(std::rethrow_exception(e.cause()), own_exception);
  }
  tired = false;
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 2000u);  // and the next run is healthy
}

BOOST_DATA_TEST_CASE(a_device_transform_that_throws_does_too, every_device, name) {
  const small_file file(2000, 64);
  int calls = 0;
  auto pipeline = (pp::read(file.plain(), pp::shuffled{.seed = 1, .run_rows = 16, .pool_rows = 100}) |
                   pp::transform_device({.name = "normalise"},
                                        [&](const pp::block&) {
                                          if (++calls == 4) throw own_exception();
                                        }) |
                   pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  BOOST_CHECK_EXCEPTION(penstock::test::consume(pipeline, 0, 1), pp::error, [&](const pp::error& e) {
    return e.where().stage == "normalise" && e.where().file == file.path().string() && e.where().dataset == "/wide" &&
           std::string(e.what()).find("the transform is tired") != std::string::npos;
  });
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 2000u);
}

BOOST_DATA_TEST_CASE(a_call_of_the_driver_that_fails_names_stage_and_rows,
                     every_device* data::make({"cudaGraphLaunch", "cudaMemcpyAsync", "cudaEventRecord"}), name, call) {
  const bool on_host = name == "host";
  if (on_host && std::string(call) != "cudaGraphLaunch") return;  // only this is done in a call's place there
  const small_file file(2000, 64);
  const auto faults = std::make_shared<failing_call>(call);
  auto pipeline = (pp::read(file.all()) | penstock::fault_seam(faults) | pp::transport({.block_bytes = 8192}) |
                   pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  faults->fail_after(5);
  try {
    for (pp::batch& batch : pipeline.epochs(0, 1)) batch.release();
    BOOST_FAIL("the failure must reach the consumer");
  } catch (const pp::error& e) {
    const std::set<std::string> stages{"copy", "gather", "consumer"};
    BOOST_TEST(stages.contains(e.where().stage), e.where().stage);
    if (std::string(call) == "cudaGraphLaunch") BOOST_TEST(e.where().stage == "gather");
    BOOST_TEST(e.where().count > 0u);
    BOOST_TEST(std::string(e.what()).find(e.where().rows) != std::string::npos);
    BOOST_TEST(std::string(e.what()).find(call) != std::string::npos);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(e.cause()), gpu::error,
                          [](const gpu::error& cause) { return cause.code() == 719; });
  }
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 2000u);  // and the next run is healthy
  BOOST_TEST(pipeline.report().failures >= 1u);
}

// As after a consumer's kernel that went wrong: nothing works any more, not even what ends the run.
BOOST_DATA_TEST_CASE(a_device_that_fails_for_good_is_an_exception_at_each_run_and_never_an_abort, every_device, name) {
  const small_file file(2000, 64);
  const auto device = std::make_shared<broken_device>();
  // The ring is much smaller than an epoch on any machine, so that work is left when the device breaks.
  auto pipeline = (pp::read(file.all()) | penstock::fault_seam(device) |
                   pp::transport({.block_bytes = 8192, .slots = 4, .threads = 2}) | pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  BOOST_CHECK_THROW(
      {
        for (pp::batch& batch : pipeline.epochs(0, 1)) {
          device->broken = true;
          batch.release();
        }
      },
      penstock::error);
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1), penstock::error);
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1), penstock::error);
  device->broken = false;
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 2000u);
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    device->broken = true;  // and the pipeline ends like this
    batch.release();
    break;
  }
}

BOOST_DATA_TEST_CASE(failures_after_the_first_are_counted, every_device, name) {
  const small_file file(2000, 64);
  std::latch both(2);  // two blocks are at work when each of them fails
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "augment", .concurrency = 2},
                                      [&](const pp::block&) {
                                        both.arrive_and_wait();
                                        throw own_exception();
                                      }) |
                   pp::transport({.block_bytes = 8192, .threads = 2}) | pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1), pp::error);
  BOOST_TEST(pipeline.report().failures == 2u);
}

BOOST_DATA_TEST_CASE(a_read_that_fails_names_file_dataset_and_rows, every_device* data::make({0, 1, 5, 17, 40}), name,
                     at) {
  const small_file file(4000, 64);
  const auto faults = std::make_shared<failing_read>(EIO);
  auto pipeline = (pp::read(file.plain()) | penstock::fault_seam(faults) | pp::transport({.block_bytes = 8192}) |
                   pp::batched({.rows = 50}))
                      .build(gpu::device::parse(name), small);
  faults->fail_after(at);
  try {
    penstock::test::consume(pipeline, 0, 1);
    BOOST_FAIL("the fault must reach the consumer");
  } catch (const pp::error& e) {
    BOOST_TEST(e.where().stage == "read");
    BOOST_TEST(e.where().file == file.path().string());
    BOOST_TEST((e.where().dataset == "/wide" || e.where().dataset == "/label"));
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(e.cause()), penstock::io::error,
                          [&](const penstock::io::error& cause) {
                            return cause.context().file == file.path().string() && !cause.context().dataset.empty() &&
                                   cause.context().rows.count > 0 && cause.context().system == EIO;
                          });
  }
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == 4000u);
}

BOOST_DATA_TEST_CASE(a_consumer_that_throws_ends_the_run_and_gets_its_exception_back, every_device, name) {
  const small_file file(4000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 50})).build(gpu::device::parse(name), small);
  int batches = 0;
  BOOST_CHECK_THROW(pipeline.run(0, 3,
                                 [&](pp::batch&) {
                                   if (++batches == 7) throw own_exception();
                                 }),
                    own_exception);
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

namespace {

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
  BOOST_TEST(reads->after <= 4);  // what both readers had begun
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
