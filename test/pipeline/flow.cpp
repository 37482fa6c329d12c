#include "flow.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <vector>

namespace pp = penstock::pipeline;

BOOST_AUTO_TEST_SUITE(flow)

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
