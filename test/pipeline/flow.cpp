#include "flow.hpp"

#include <penstock/gpu/device.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <vector>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;

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

BOOST_AUTO_TEST_CASE(bodies_run_side_by_side) {
  std::latch both(2);  // passed only when two bodies are inside at the same time
  pp::flow flow(2, {{2, [&](std::uint64_t) { both.arrive_and_wait(); }}}, [](std::uint64_t) {});
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

BOOST_AUTO_TEST_CASE(how_many_are_read_at_once_may_change_on_the_way) {
  std::atomic<std::size_t> inside{0}, most{0}, allowed{3}, reads{0}, too_many{0};
  std::vector<std::uint64_t> out;
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
      [&](std::uint64_t block) { out.push_back(block); },
      [&](bool) {
        if (++reads == 400) allowed = 5;
        return allowed.load();
      });
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

BOOST_AUTO_TEST_CASE(a_stage_keeps_to_its_concurrency) {
  std::atomic<int> inside{0}, most{0};
  pp::flow flow(4,
                {{1,
                  [&](std::uint64_t) {
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                    }
                    --inside;
                  }}},
                [](std::uint64_t) {});
  for (std::uint64_t b = 0; b < 200; ++b) flow.submit(b);
  flow.drain();
  BOOST_TEST(most == 1);
}

BOOST_AUTO_TEST_CASE(it_can_be_destroyed_with_blocks_inside) {
  std::atomic<int> out{0};
  {
    pp::flow flow(2, {{2, [](std::uint64_t) {}}}, [&](std::uint64_t) { ++out; });
    for (std::uint64_t b = 0; b < 100; ++b) flow.submit(b);
  }
  BOOST_TEST(out == 100);
}

BOOST_AUTO_TEST_SUITE_END()
