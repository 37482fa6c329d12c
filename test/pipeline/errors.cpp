#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/io/error.hpp>

#include <atomic>
#include <cerrno>
#include <latch>
#include <new>
#include <set>
#include <stdexcept>

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

/// Counts the waits for streams; lets the first fail, when told.
class counted_waits : public penstock::fault_injector {
 public:
  explicit counted_waits(bool fails) : fails_(fails) {}
  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::cuda_call || what != "cudaStreamSynchronize") return {};
    return {.error = waits.fetch_add(1) == 0 && fails_ ? 719 : 0};
  }
  std::atomic<int> waits{0};

 private:
  const bool fails_;
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

// Copies and kernels are in flight on two streams, and both are waited for when a run ends.
BOOST_DATA_TEST_CASE(where_the_wait_for_one_stream_fails_the_other_is_waited_for_all_the_same, every_device, name) {
  const small_file file(2000, 64);
  const auto waits_of = [&](bool fails) {
    const auto counted = std::make_shared<counted_waits>(fails);
    {
      auto pipeline = (pp::read(file.all()) | penstock::fault_seam(counted) |
                       pp::transport({.block_bytes = 8192, .threads = 2}) | pp::batched({.rows = 50}))
                          .build(gpu::device::parse(name), small);
      BOOST_TEST(counted->waits == 0);
      try {
        for (pp::batch& batch : pipeline.epochs(0, 1)) batch.release();
      } catch (const penstock::error& e) {  // it comes behind the last batch, and may find nobody
        BOOST_TEST(fails, e.what());
      }
    }
    return counted->waits.load();
  };
  const int healthy = waits_of(false);
  BOOST_TEST(healthy >= 2);
  BOOST_TEST(waits_of(true) == healthy);
}

// The rows of an epoch are no multiple of a batch's: what lies behind the last one is no row of any order.
BOOST_DATA_TEST_CASE(a_failure_at_an_epochs_padding_names_its_last_row,
                     every_device* data::make({"sequential", "shuffled", "some rows"}), name, how) {
  const small_file file(2000, 64);
  pp::source from = file.plain();
  if (std::string(how) == "some rows") from.select(pp::selection(std::vector<pp::extent>{{500, 1450}}));
  pp::order_options order = pp::sequential{};
  if (std::string(how) == "shuffled") order = pp::shuffled{.seed = 1, .run_rows = 16, .pool_rows = 100};
  const std::uint64_t rows = std::string(how) == "some rows" ? 1450 : 2000;
  const auto faults = std::make_shared<failing_call>("cudaMemsetAsync");
  auto pipeline = (pp::read(from, order) | penstock::fault_seam(faults) | pp::transport({.block_bytes = 8192}) |
                   pp::batched({.rows = 64, .last = pp::last_batch::pad}))
                      .build(gpu::device::parse(name), small);
  faults->fail_after(0);
  try {
    for (pp::batch& batch : pipeline.epochs(3, 1)) batch.release();
    BOOST_FAIL("the failure must reach the consumer");
  } catch (const pp::error& e) {
    BOOST_TEST(e.where().epoch == 3u);
    BOOST_TEST(e.where().first == rows - 1);
    BOOST_TEST(e.where().count == 1u);
    if (std::string(how) == "sequential") BOOST_TEST(e.where().rows == "rows 1999-1999");
    if (std::string(how) == "some rows") BOOST_TEST(e.where().rows == "rows 1949-1949");
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(e.cause()), gpu::error,
                          [](const gpu::error& cause) { return cause.code() == 719; });
  }
  BOOST_TEST(penstock::test::consume(pipeline, 0, 1).size() == rows);
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

BOOST_DATA_TEST_CASE(a_consumer_can_give_its_own_failures_the_place_that_stages_give, every_device, name) {
  const small_file file(2050, 64);
  const auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 100, .last = pp::last_batch::pad}))
                            .build(gpu::device::parse(name), small);
  const auto cause = std::make_exception_ptr(own_exception());
  const std::string from = ", from /wide of " + file.path().string() + ": the transform is tired";
  const pp::error failed = pipeline.failure({3, 5}, cause);
  BOOST_TEST(failed.what() == "consumer failed at rows 500-599 of epoch 3" + from);
  BOOST_TEST(failed.where().stage == "consumer");
  BOOST_TEST(failed.where().epoch == 3u);
  BOOST_TEST(failed.where().first == 500u);
  BOOST_TEST(failed.where().count == 100u);
  BOOST_TEST(failed.where().file == file.path().string());
  BOOST_TEST(failed.where().dataset == "/wide");
  BOOST_CHECK_THROW(std::rethrow_exception(failed.cause()), own_exception);
  using enum pp::failed_work::when;
  BOOST_TEST(pipeline.failure({0, 20}, cause, {.stage = "step", .name = "step 7", .at = at_or_before}).what() ==
             "step 7 failed at or before rows 2000-2049 of epoch 0" + from);
  const pp::error early = pipeline.failure({1, 0}, cause, {.stage = "step", .at = before});
  BOOST_TEST(early.what() == "step failed before rows 0-99 of epoch 1" + from);
  BOOST_TEST(early.where().stage == "step");
  BOOST_TEST(pipeline.failure({1, 21}, cause, {.at = before}).what() ==
             "consumer failed before the end of epoch 1: the transform is tired");
  BOOST_CHECK_THROW(pipeline.failure({1, 22}, cause), std::invalid_argument);
  BOOST_TEST(pipeline.failure({0, 0}, std::make_exception_ptr(std::bad_alloc())).what() ==
             "consumer failed at rows 0-99 of epoch 0, from /wide of " + file.path().string() +
                 ": there is not enough host memory");
}

BOOST_AUTO_TEST_SUITE_END()
