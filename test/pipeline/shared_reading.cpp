// Rows that need nothing but reading, on the host: the consumer takes part in it.
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

/// Once told, keeps all readers but the thread that told it from reading, until that one has read some blocks.
class waiting_readers : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::read_file) return {};
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() != consumer_) {
      changed_.wait(lock, [&] { return left_ <= 0; });
      return {};
    }
    ++reads;
    if (left_ <= 0 || --left_ > 0) return {};
    changed_.notify_all();
    if (on_last) on_last();
    return {.error = error, .delay = delay};
  }
  /// The calling thread is to read so many times.
  void wait_for_caller(int times) {
    const std::lock_guard lock(mutex_);
    consumer_ = std::this_thread::get_id();
    left_ = times;
  }

  std::atomic<int> reads{0};           ///< of the consumer
  std::function<void()> on_last;       ///< at the last of them
  int error = 0;                       ///< with which that one fails
  std::chrono::milliseconds delay{0};  ///< by which it takes longer

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id consumer_;
  int left_ = 0;
};

pp::pipeline build(const small_file& file, penstock::fault_seam faults, pp::transport_options how = {}) {
  if (how.block_bytes == 0) how.block_bytes = 8192;
  auto pipeline = (pp::read(file.plain()) | std::move(faults) | pp::transport(how) | pp::batched({.rows = 50}))
                      .build(gpu::device::host(), small);
  BOOST_REQUIRE_EQUAL(pipeline.plan().slots, 0u);
  return pipeline;
}

/// A pipeline whose consumer takes part: it has seen that reads are short.
pp::pipeline warm(const small_file& file, const std::shared_ptr<waiting_readers>& readers) {
  auto pipeline = build(file, readers, {.threads = 2});
  BOOST_TEST(consume(pipeline, 0, 1).size() == file.rows());
  return pipeline;
}

std::vector<std::uint64_t> in_order(std::uint64_t rows, std::uint64_t epochs) {
  std::vector<std::uint64_t> all(rows * epochs);
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = i % rows;
  return all;
}

double charged(const pp::pipeline_report& report, const std::string& stage = {}) {
  double sum = 0;
  for (const pp::time_charge& wait : report.consumer_waits)
    if (stage.empty() || wait.stage == stage) sum += wait.seconds;
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_reading, *boost::unit_test::timeout(300))

BOOST_DATA_TEST_CASE(rows_come_in_order_whatever_the_blocks_and_threads,
                     data::make({1, 4096, 20000, 1 << 20}) * data::make({0, 1, 2, 5}), block_bytes, threads) {
  const small_file file(1999, 64);
  const pp::transport_options how{.block_bytes = static_cast<std::size_t>(block_bytes),
                                  .threads = static_cast<std::size_t>(threads)};
  auto pipeline = build(file, {}, how);
  BOOST_TEST((consume(pipeline, 0, 3) == in_order(1999, 3)));
  BOOST_TEST((consume(pipeline, 3, 1) == in_order(1999, 1)));
}

BOOST_DATA_TEST_CASE(every_row_comes_once_in_random_order, data::make({3, 50, 700}), batch_rows) {
  const small_file file(1000, 64);
  for (const auto last : {pp::last_batch::keep, pp::last_batch::pad}) {
    auto pipeline = (pp::read(file.plain(), pp::random{.seed = 7}) | pp::transport({.block_bytes = 4096}) |
                     pp::batched({.rows = static_cast<std::size_t>(batch_rows), .last = last}))
                        .build(gpu::device::host(), small);
    const auto rows = consume(pipeline, 0, 2);
    BOOST_REQUIRE_EQUAL(rows.size(), 2000u);
    const auto half = rows.begin() + 1000;
    BOOST_TEST(std::set(rows.begin(), half).size() == 1000u);
    BOOST_TEST(std::set(half, rows.end()).size() == 1000u);
  }
}

BOOST_AUTO_TEST_CASE(padding_is_zero_though_other_rows_lay_there) {
  const small_file file(130);
  auto pipeline = (pp::read(file.plain()) | pp::transport({.block_bytes = 1024}) |
                   pp::batched({.rows = 50, .last = pp::last_batch::pad}))
                      .build(gpu::device::host(), small);
  for (const pp::batch& batch : pipeline.epochs(0, 20)) {
    const auto labels = batch.field<std::int32_t>("label");
    for (std::uint64_t row = batch.valid_rows(); row < batch.rows(); ++row) BOOST_REQUIRE_EQUAL(labels[row], 0);
  }
}

BOOST_AUTO_TEST_CASE(the_consumer_reads_while_others_take_their_time) {
  const small_file file(20000, 64);
  const auto readers = std::make_shared<waiting_readers>();
  auto pipeline = warm(file, readers);
  readers->delay = std::chrono::milliseconds(20);  // what others read is there long before
  readers->wait_for_caller(2);
  BOOST_TEST((consume(pipeline, 1, 1) == in_order(20000, 1)));
  BOOST_TEST(readers->reads >= 2);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  BOOST_TEST(charged(report, "read") > 0.015);
  BOOST_TEST(charged(report) == report.consumer_wait_seconds, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(report.stages.at(0).busy_seconds + report.stages.at(0).wait_seconds <= 2 * report.seconds * 1.001);
}

BOOST_AUTO_TEST_CASE(a_block_that_the_consumer_fails_to_read_names_its_rows) {
  const small_file file(20000, 64);
  const auto readers = std::make_shared<waiting_readers>();
  auto pipeline = warm(file, readers);
  readers->error = EIO;
  readers->wait_for_caller(1);
  BOOST_CHECK_EXCEPTION(consume(pipeline, 1, 1), pp::error, [&](const pp::error& e) {
    return e.where().stage == "read" && e.where().epoch == 1 && e.where().count > 0 &&
           e.where().file == file.path().string();
  });
  BOOST_TEST((consume(pipeline, 2, 1) == in_order(20000, 1)));  // and the next run is healthy
}

BOOST_AUTO_TEST_CASE(a_run_may_be_stopped_while_the_consumer_reads) {
  const small_file file(20000, 64);
  const auto readers = std::make_shared<waiting_readers>();
  auto pipeline = warm(file, readers);
  std::stop_source stop;
  readers->on_last = [&] { stop.request_stop(); };
  readers->wait_for_caller(1);
  BOOST_CHECK_THROW(consume(pipeline, 1, 1, {.stop = stop.get_token()}), pp::stopped);
  BOOST_TEST((consume(pipeline, 2, 1) == in_order(20000, 1)));
}

// Rows come back in order: those of the batch that is held longest free the others.
BOOST_AUTO_TEST_CASE(batches_may_be_given_back_elsewhere_while_the_consumer_waits) {
  const small_file file(20000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::transport({.block_bytes = 8192}) | pp::batched({.rows = 50, .held = 6}))
                      .build(gpu::device::host(), small);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<pp::batch> held;
  bool over = false;
  std::jthread other([&] {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [&] { return over || held.size() == 6; });
      if (over) return;
      while (!held.empty()) held.pop_back();
      changed.notify_all();
    }
  });
  std::vector<std::uint64_t> rows;
  auto range = pipeline.epochs(0, 3);
  for (;;) {
    pp::batch next = range.next();
    if (!next) break;
    penstock::test::check(next, rows);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return held.size() < 6; });
    held.push_back(std::move(next));
    changed.notify_all();
  }
  {
    const std::lock_guard lock(mutex);
    held.clear();
    over = true;
    changed.notify_all();
  }
  BOOST_TEST((rows == in_order(20000, 3)));
}

// While reads are long, they are left to others: the consumer takes what comes.
BOOST_AUTO_TEST_CASE(waits_for_slow_storage_are_charged_to_reading_and_add_up) {
  class slow_storage : public penstock::fault_injector {
   public:
    penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
      if (site != penstock::fault_site::read_file || !late) return {};
      if (std::this_thread::get_id() == consumer) ++by_consumer;
      return {.delay = std::chrono::milliseconds(4)};
    }
    std::atomic<bool> late{false};
    std::atomic<int> by_consumer{0};
    const std::thread::id consumer = std::this_thread::get_id();
  };
  const small_file file(2000, 64);
  for (int tries = 1;; ++tries) {
    const auto storage = std::make_shared<slow_storage>();
    auto pipeline = build(file, storage, {.threads = 2});
    storage->late = true;
    double measured = 0;
    auto range = pipeline.epochs(0, 1);
    for (bool more = true; more;) {
      const auto start = std::chrono::steady_clock::now();
      more = static_cast<bool>(range.next());
      measured += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const pp::pipeline_report report = pipeline.report();
    BOOST_TEST_INFO(to_text(report));
    BOOST_TEST(storage->by_consumer == 0);
    BOOST_TEST(charged(report) == report.consumer_wait_seconds, boost::test_tools::tolerance(1e-6));
    BOOST_TEST(charged(report, "read") > 0.5 * report.consumer_wait_seconds);
    // Another process may take the processor between the two clocks: then it is measured once more.
    if (std::abs(charged(report) - measured) <= 0.02 * measured) break;
    BOOST_REQUIRE_MESSAGE(tries < 5, "charged " << charged(report) << " s, measured " << measured << " s");
  }
}

BOOST_AUTO_TEST_SUITE_END()
