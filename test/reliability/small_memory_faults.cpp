// Small pieces of host memory that are refused: each use of operator new in turn throws std::bad_alloc, once, while an
// epoch streams on the host. A program of its own, since refused_memory.cpp replaces operator new for all of it.

#include "../pipeline/small_file.hpp"
#include "open_files.hpp"
#include "refused_memory.hpp"
#include "watchdog.hpp"

#include <penstock/pipeline/description.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

namespace {

namespace gpu = penstock::gpu;
namespace pp = penstock::pipeline;
using namespace penstock::literals;
using namespace penstock::test;

constexpr std::uint64_t rows = 1500;
const gpu::budget enough{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

/// One epoch: every row once, with its values. Asks for no memory itself. `begun`: the run has.
std::string epoch(pp::pipeline& from, bool& begun) {
  std::uint64_t seen = 0, numbers = 0;
  bool right = true;
  begun = false;
  auto range = from.epochs(0, 1);
  begun = true;
  while (const pp::batch batch = range.next()) {
    const auto* const label = batch.field<std::int32_t>("label");
    const auto* const wide = batch.field<float>("wide");
    for (std::size_t n = 0; n < batch.valid_rows(); ++n) {
      numbers += static_cast<std::uint64_t>(label[n]);
      for (std::size_t column = 0; column < 33; ++column)
        right = right && wide[n * 33 + column] == static_cast<float>(label[n] * 33) + static_cast<float>(column);
    }
    seen += batch.valid_rows();
  }
  if (seen != rows || numbers != rows * (rows - 1) / 2) return "rows are missing";
  return right ? "right rows" : "wrong rows";
}

/// How an epoch ends: right rows, or one exception that says what it lacks, and once the run has begun, where.
std::string end_of_epoch(pp::pipeline& from) {
  bool begun = false;
  try {
    return epoch(from, begun);
  } catch (const pp::error& e) {
    const std::string sentence = e.what();
    return sentence.find(": there is not enough host memory") != std::string::npos
               ? "pipeline::error (" + e.where().stage + ")"
               : sentence;
  } catch (const std::bad_alloc&) {
    return begun ? "no place" : "std::bad_alloc (to begin)";
  } catch (const std::exception& e) {
    return e.what();
  }
}

bool is_expected(const std::string& outcome) {
  return outcome == "right rows" || outcome == "std::bad_alloc (to begin)" || outcome.starts_with("pipeline::error (");
}

/// Each use of an epoch in turn: of the first ones all, then in growing steps. The pipeline lives on.
void try_each_use(const std::string& kind, const pp::description& description) {
  auto pipeline = description.build(gpu::device::host(), enough);
  BOOST_TEST_REQUIRE(end_of_epoch(pipeline) == "right rows");
  std::map<std::string, int> outcomes;
  std::int64_t uses = 0;
  for (;; uses += uses < 400 ? 1 : uses / 50) {
    const watchdog watched(kind + ", use " + std::to_string(uses) + " of operator new", std::chrono::seconds(60));
    refuse_memory_at(uses);
    const std::string how = end_of_epoch(pipeline);
    const bool refused = refuse_no_memory();
    BOOST_TEST_CONTEXT(kind << ", use " << uses << " of operator new") {
      if (!refused) {
        BOOST_TEST(how == "right rows");
        break;
      }
      BOOST_TEST(is_expected(how), how);
      BOOST_TEST(end_of_epoch(pipeline) == "right rows");
    }
    ++outcomes[how];
  }
  BOOST_TEST(uses > 0);
  std::string text;
  for (const auto& [how, count] : outcomes) text += "  " + how + " x " + std::to_string(count);
  BOOST_TEST_MESSAGE(kind << ": " << uses << " uses:" << text);
}

/// A pipeline that is destroyed amid an epoch, with uses refused in turn: its range tells that, and may end after it.
void destroy_at_each_use(const std::string& kind, const pp::description& description) {
  for (std::int64_t uses = 0; uses < 20; ++uses) {
    const watchdog watched(kind + ", destroyed at use " + std::to_string(uses), std::chrono::seconds(60));
    std::optional<pp::pipeline> pipeline(description.build(gpu::device::host(), enough));
    auto range = pipeline->epochs(0, 1);
    BOOST_TEST_REQUIRE(bool(range.next()));
    refuse_memory_at(uses);
    pipeline.reset();
    const bool refused = refuse_no_memory();
    BOOST_CHECK_EXCEPTION(range.next(), pp::error, [](const pp::error& e) {
      return std::string(e.what()).find("cannot be had any more") != std::string::npos;
    });
    if (uses == 0) BOOST_TEST(refused);
  }
}

pp::description reading_alone(const small_file& file) {
  return pp::read(file.plain()) | pp::transport({.block_bytes = 8192, .threads = 3}) |
         pp::batched({.rows = 50, .last = pp::last_batch::pad});
}

pp::description many_readers(const small_file& file) {
  return pp::read(file.all(), pp::shuffled{.seed = 2, .run_rows = 16, .pool_rows = 128}) |
         pp::transport({.block_bytes = 4096, .slots = 8, .threads = 8}) |
         pp::batched({.rows = 50, .last = pp::last_batch::pad});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(small_memory_faults, *boost::unit_test::timeout(600))

BOOST_AUTO_TEST_CASE(rows_that_need_nothing_but_reading) {
  const small_file file(rows, 64, 1);
  try_each_use("reading alone", reading_alone(file));
}

BOOST_AUTO_TEST_CASE(rows_that_are_drawn_converted_and_transformed) {
  const small_file file(rows, 64, 1);
  try_each_use("every stage", pp::read(file.all(), pp::shuffled{.seed = 2, .run_rows = 16, .pool_rows = 128}) |
                                  pp::transform_host({.name = "augment", .concurrency = 2}, [](const pp::block&) {}) |
                                  pp::transform_device({.name = "normalise"}, [](const pp::block&) {}) |
                                  pp::transport({.block_bytes = 8192, .slots = 4, .threads = 3}) |
                                  pp::batched({.rows = 50, .last = pp::last_batch::pad}));
}

BOOST_AUTO_TEST_CASE(more_readers_than_processors) {
  const small_file file(rows, 64, 1);
  try_each_use("many readers", many_readers(file));
}

BOOST_AUTO_TEST_CASE(a_range_outlives_a_pipeline_that_finds_no_memory_for_its_end) {
  const small_file file(rows, 64, 1);
  destroy_at_each_use("reading alone", reading_alone(file));
  destroy_at_each_use("many readers", many_readers(file));
}

/// Two wait for the one place there is. Who gets it has no memory for the loan: the other must get the place then.
BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_lent_is_no_end_of_waiting_for_others) {
  penstock::io::open_files<int> files(1);
  std::atomic<bool> first{true};
  std::counting_semaphore<2> begun(0), ended(0);
  std::atomic<int> refused{0}, lent{0};
  const auto wait_for = [&](std::size_t key) {
    begun.release();
    try {
      const auto mine = files.acquire(key, [&] {
        auto opened = std::make_shared<int>(static_cast<int>(key));
        if (first.exchange(false)) refuse_memory_at(1);  // 0 is the list's: it keeps what is open
        return opened;
      });
      lent += *mine == static_cast<int>(key);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    ended.release();
  };
  auto held = files.acquire(0, [] { return std::make_shared<int>(0); });
  std::jthread one(wait_for, 1), two(wait_for, 2);
  begun.acquire();
  begun.acquire();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // where one does not wait yet, nothing can go wrong
  held.reset();
  ended.acquire();
  const bool in_time = ended.try_acquire_for(std::chrono::seconds(20));
  BOOST_TEST(in_time);
  refuse_no_memory();
  if (!in_time) files.acquire(3, [] { return std::make_shared<int>(3); });  // its end wakes who waits
  one.join();
  two.join();
  BOOST_TEST(refused == 1);
  BOOST_TEST(lent == 1);
}

BOOST_AUTO_TEST_SUITE_END()
