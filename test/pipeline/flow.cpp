#include "flow.hpp"

#include <penstock/gpu/device.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <ostream>
#include <thread>
#include <vector>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;

namespace {

/// How blocks are read: in the graph, on threads apart, and on such ones of which one watches.
struct way {
  const char* name;
  bool apart, watchful;
  pp::flow::reading reading() const { return {.apart = apart, .watchful = watchful, .readers = {}}; }
  friend std::ostream& operator<<(std::ostream& to, const way& w) { return to << w.name; }
};
const auto ways = boost::unit_test::data::make(
    std::vector<way>{{"graph", false, false}, {"apart", true, false}, {"apart, watchful", true, true}});

}  // namespace

BOOST_AUTO_TEST_SUITE(flow, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(blocks_come_out_in_the_order_in_which_they_went_in) {
  std::vector<std::uint64_t> out;
  pp::flow flow(4,
                {{4,
                  [](std::uint64_t block) {
                    [[maybe_unused]] volatile std::uint64_t sink = 0;
                    for (std::uint64_t i = 0; i < (block * 7919) % 5000; ++i) sink = i;
                  }},
                 {2, [](std::uint64_t) {}}},
                [&](std::uint64_t block) { out.push_back(block); });
  for (std::uint64_t b = 0; b < 1000; ++b) flow.submit(b * 3);
  flow.drain();
  BOOST_REQUIRE_EQUAL(out.size(), 1000u);
  for (std::uint64_t b = 0; b < 1000; ++b) BOOST_REQUIRE_EQUAL(out[b], b * 3);
}

BOOST_DATA_TEST_CASE(blocks_that_are_read_in_any_order_come_out_one_at_a_time_and_in_theirs, ways, how) {
  std::vector<std::uint64_t> out;
  std::atomic<int> inside{0}, together{0};
  pp::flow flow(
      4,
      {{4,
        [](std::uint64_t block) {
          if (block % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        }}},
      [&](std::uint64_t block) {
        if (++inside > 1) ++together;
        out.push_back(block);
        --inside;
      },
      how.reading());
  for (std::uint64_t b = 0; b < 1000; ++b) {
    flow.submit(b * 3);
    if (b % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than anybody watches
  }
  flow.drain();
  BOOST_TEST(together == 0);
  BOOST_REQUIRE_EQUAL(out.size(), 1000u);
  for (std::uint64_t b = 0; b < 1000; ++b) BOOST_REQUIRE_EQUAL(out[b], b * 3);
}

BOOST_DATA_TEST_CASE(bodies_run_side_by_side, ways, how) {
  std::latch both(2);  // passed only when two bodies are inside at the same time
  pp::flow flow(
      2, {{2, [&](std::uint64_t) { both.arrive_and_wait(); }}}, [](std::uint64_t) {}, how.reading());
  flow.submit(0);
  flow.submit(1);
  flow.drain();
  BOOST_TEST(both.try_wait());
}

BOOST_AUTO_TEST_CASE(as_many_blocks_are_read_at_once_as_asked_for_though_there_are_fewer_processors) {
  const auto readers = static_cast<std::size_t>(gpu::processors()) + 3;
  std::latch all(static_cast<std::ptrdiff_t>(readers));
  pp::flow flow(readers, {{readers, [&](std::uint64_t) { all.arrive_and_wait(); }}, {1, [](std::uint64_t) {}}},
                [](std::uint64_t) {});
  for (std::uint64_t b = 0; b < readers; ++b) flow.submit(b);
  flow.drain();
  BOOST_TEST(all.try_wait());
}

BOOST_DATA_TEST_CASE(how_many_are_read_at_once_may_change_on_the_way, ways, how) {
  std::atomic<std::size_t> inside{0}, most{0}, allowed{3}, reads{0}, too_many{0};
  std::vector<std::uint64_t> out;
  pp::flow::reading reading = how.reading();
  reading.readers = [&](bool) {
    if (++reads == 400) allowed = 5;
    return allowed.load();
  };
  pp::flow flow(
      1,
      {{1,
        [&](std::uint64_t) {
          const std::size_t now = ++inside;
          for (std::size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          if (now > allowed) ++too_many;
          --inside;
        }}},
      [&](std::uint64_t block) { out.push_back(block); }, std::move(reading));
  for (std::uint64_t b = 0; b < 2000; ++b) flow.submit(b);
  flow.drain();
  BOOST_TEST(most <= 5u);
  BOOST_TEST(too_many == 0u);
  BOOST_TEST(reads == 2000u);
  BOOST_REQUIRE_EQUAL(out.size(), 2000u);
  for (std::uint64_t b = 0; b < 2000; ++b) BOOST_REQUIRE_EQUAL(out[b], b);
}

BOOST_AUTO_TEST_CASE(flows_with_more_threads_than_processors_leave_workers_to_the_next) {
  if (gpu::processors() < 2) return;
  for (std::size_t n = 0; n < 30; ++n) {
    const std::size_t threads = 1 + n % (gpu::processors() + 2);
    pp::flow flow(threads, {{threads, [](std::uint64_t) {}}}, [](std::uint64_t) {});
    for (std::uint64_t b = 0; b < 50; ++b) flow.submit(b);
  }
  std::latch both(2);
  pp::flow flow(2, {{2, [&](std::uint64_t) { both.arrive_and_wait(); }}}, [](std::uint64_t) {});
  flow.submit(0);
  flow.submit(1);
  flow.drain();
  BOOST_TEST(both.try_wait());
}

BOOST_DATA_TEST_CASE(a_stage_keeps_to_its_concurrency, ways, how) {
  std::atomic<int> inside{0}, most{0};
  pp::flow flow(
      4,
      {{1,
        [&](std::uint64_t) {
          const int now = ++inside;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          --inside;
        }}},
      [](std::uint64_t) {}, how.reading());
  for (std::uint64_t b = 0; b < 200; ++b) flow.submit(b);
  flow.drain();
  BOOST_TEST(most == 1);
}

BOOST_DATA_TEST_CASE(it_can_be_destroyed_with_blocks_inside, ways, how) {
  std::atomic<int> out{0};
  {
    pp::flow flow(
        2, {{2, [](std::uint64_t) {}}}, [&](std::uint64_t) { ++out; }, how.reading());
    for (std::uint64_t b = 0; b < 100; ++b) flow.submit(b);
  }
  BOOST_TEST(out == 100);
}

BOOST_AUTO_TEST_SUITE_END()
