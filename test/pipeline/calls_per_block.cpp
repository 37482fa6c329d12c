// What a small batch costs: nothing that could be done for a whole block.

#include "small_file.hpp"

#include "../support/gpu.hpp"

#include <penstock/fault.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

/// Counts CUDA calls by name: those of the thread that made it, which consumes, and those of all others.
class call_counts final : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::cuda_call) return {};
    const std::lock_guard lock(mutex_);
    ++(std::this_thread::get_id() == consumer_ ? of_consumer_ : of_others_)[std::string(what)];
    return {};
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    of_consumer_.clear();
    of_others_.clear();
  }
  std::uint64_t of_consumer(const std::string& name) { return count(of_consumer_, name); }
  std::uint64_t of_others(const std::string& name) { return count(of_others_, name); }

 private:
  using counts = std::map<std::string, std::uint64_t>;
  std::uint64_t count(counts& of, const std::string& name) {
    const std::lock_guard lock(mutex_);
    return of[name];
  }

  const std::thread::id consumer_ = std::this_thread::get_id();
  std::mutex mutex_;
  counts of_consumer_, of_others_;
};

/// An epoch in batches of 8 rows, after one that warms up.
void check_events(const pp::order_options& order) {
  constexpr std::uint64_t rows = 65536, batch_rows = 8, of_each_block = 32;
  constexpr double least_interval =
      5e-6;  // seconds between two questions of the device's thread whether copies are done
  const small_file file(rows, 64);
  const auto calls = std::make_shared<call_counts>();
  auto pipeline =
      (pp::read(file.plain(), order) | penstock::fault_seam(calls) |
       pp::transport({.block_bytes = 512_KiB, .slots = 8, .threads = 2}) | pp::batched({.rows = batch_rows}))
          .build(penstock::test::first_gpu(), {.device_bytes = 64_MiB, .pinned_bytes = 64_MiB, .host_bytes = 64_MiB});
  const gpu::stream consumer(penstock::test::first_gpu());
  const auto epoch = [&](std::uint64_t number) {
    std::uint64_t batches = 0;
    for (const pp::batch& batch : pipeline.epochs(number, 1, {.stream = consumer})) batches += batch.valid_rows() > 0;
    return batches;
  };
  epoch(0);
  calls->reset();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t batches = epoch(1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::uint64_t blocks = (rows + pipeline.plan().block_rows - 1) / pipeline.plan().block_rows;
  const std::uint64_t bound = of_each_block * blocks;
  BOOST_TEST(batches == rows / batch_rows);
  BOOST_TEST_REQUIRE(bound < batches / 4);               // else it would bound nothing
  BOOST_TEST(calls->of_others("cudaEventRecord") > 0u);  // they are counted at all
  for (const char* name : {"cudaEventRecord", "cudaStreamWaitEvent", "cudaEventQuery"})
    BOOST_TEST(calls->of_consumer(name) <= bound, name);
  for (const char* name : {"cudaEventRecord", "cudaStreamWaitEvent"}) BOOST_TEST(calls->of_others(name) <= bound, name);
  const double questions = 2 * seconds.count() / least_interval;  // of slots, and of rows
  BOOST_TEST(static_cast<double>(calls->of_others("cudaEventQuery")) <= static_cast<double>(bound) + questions);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(calls_per_block, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(events_of_small_batches_are_as_many_as_blocks_ask_for, penstock::test::on_gpu()) {
  check_events(pp::sequential{});
  check_events(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 8192});
}

BOOST_AUTO_TEST_SUITE_END()
