// How many readers are at work in a pipeline that nobody told it.
#include "small_file.hpp"

#include <penstock/fault.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

constexpr std::chrono::milliseconds delay{4};
constexpr std::uint64_t most_epochs = 20;

/// Storage that takes its time for each answer, however many are asked for at once.
class late_storage : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site != penstock::fault_site::read_file || !late) return {};
    return {.delay = delay};
  }
  std::atomic<bool> late{false};
};

pp::pipeline build(const small_file& file, const std::shared_ptr<late_storage>& storage, pp::transport_options how) {
  return (pp::read(file.all(), pp::shuffled{.seed = 1, .run_rows = 50, .pool_rows = 4000}) |
          penstock::fault_seam(storage) | pp::transport(how) | pp::batched({.rows = 100}))
      .build(gpu::device::host(), {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(readers, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(late_storage_gets_more_readers_and_the_rows_stay_in_order) {
  const small_file file(10000, 50);
  const auto storage = std::make_shared<late_storage>();
  const pp::transport_options how{.block_bytes = 8192, .slots = 150};
  auto expected = build(file, storage, how);
  auto pipeline = build(file, storage, how);
  BOOST_TEST(pipeline.plan().most_threads > pipeline.plan().threads);
  storage->late = true;
  std::uint64_t epochs = 0;
  for (; epochs < most_epochs && pipeline.report().readers.now == pipeline.plan().threads; ++epochs) {
    const auto rows = consume(pipeline, epochs, 2);
    storage->late = false;
    BOOST_TEST(rows == consume(expected, epochs, 2));
    storage->late = true;
  }
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  BOOST_TEST(report.readers.first == pipeline.plan().threads);
  BOOST_TEST(report.readers.most == pipeline.plan().most_threads);
  BOOST_TEST(report.readers.now > report.readers.first);
  BOOST_TEST(report.readers.now <= report.readers.most);
  BOOST_REQUIRE(report.readers.measured.size() >= 1u);
  BOOST_TEST(report.choices.back().find("readers, of at most") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_slow_consumer_gets_no_more_readers) {
  const small_file file(5000, 50);
  auto pipeline =
      (pp::read(file.all()) | pp::transport({.block_bytes = 8192, .slots = 10}) | pp::batched({.rows = 100}))
          .build(gpu::device::host(), {.device_bytes = 256_KiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
  for (const pp::batch& batch : pipeline.epochs(0, 2))
    if (batch) std::this_thread::sleep_for(delay);
  const pp::readers_report readers = pipeline.report().readers;
  BOOST_TEST(readers.now == readers.first);
}

BOOST_AUTO_TEST_CASE(a_number_that_was_asked_for_stays) {
  const small_file file(10000, 50);
  const auto storage = std::make_shared<late_storage>();
  auto pipeline = build(file, storage, {.block_bytes = 8192, .slots = 150, .threads = 2});
  storage->late = true;
  consume(pipeline, 0, 1);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST(report.readers.now == 2u);
  BOOST_TEST(report.readers.most == 2u);
  BOOST_TEST(report.readers.as_asked_for);
  BOOST_TEST(report.choices.back() == "2 readers: as asked for");
}

BOOST_AUTO_TEST_CASE(the_plan_says_what_was_chosen_and_why) {
  const small_file file(10000, 50);
  const auto storage = std::make_shared<late_storage>();
  const auto chosen = build(file, storage, {}).plan().choices;
  BOOST_REQUIRE_EQUAL(chosen.size(), 3u);
  BOOST_TEST(chosen[0].find("as near to 1 MiB as") != std::string::npos);
  BOOST_TEST(chosen[2].find("tried while running") != std::string::npos);
  const auto asked = build(file, storage, {.block_bytes = 8192, .slots = 150, .threads = 2}).plan().choices;
  for (const std::string& choice : asked) BOOST_TEST(choice.find("as asked for") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
