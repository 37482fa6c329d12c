#include "stamps.hpp"

#include <boost/test/unit_test.hpp>

namespace pp = penstock::pipeline;
using ms = std::chrono::milliseconds;

BOOST_AUTO_TEST_SUITE(stamps)

BOOST_AUTO_TEST_CASE(a_wait_is_charged_to_what_the_head_of_the_line_was_waiting_for) {
  pp::stamps times(8);
  const pp::clock::time_point t0{std::chrono::seconds(1000)};
  times.set(0, pp::stamps::issued, t0 - ms(50));
  times.set(0, pp::stamps::was_read, t0 + ms(10));
  times.set(0, pp::stamps::came_out, t0 + ms(15));
  times.set(1, pp::stamps::issued, t0 + ms(20));
  times.set(1, pp::stamps::was_read, t0 + ms(50));
  times.set(1, pp::stamps::came_out, t0 + ms(50));
  const auto charged = times.charge(t0, t0 + ms(60), 1);
  BOOST_TEST(charged[0] == 0.005,
             boost::test_tools::tolerance(1e-9));  // block 1 was let in 5 ms after block 0 came out
  BOOST_TEST(charged[1] == 0.040, boost::test_tools::tolerance(1e-9));  // 10 ms of block 0, 30 of block 1
  BOOST_TEST(charged[2] == 0.005, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(charged[3] == 0.010, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_charges_add_up_to_the_wait) {
  pp::stamps times(4);
  const pp::clock::time_point t0{std::chrono::seconds(1000)};
  for (std::uint64_t block = 0; block < 2; ++block)
    for (const auto point : {pp::stamps::issued, pp::stamps::was_read, pp::stamps::came_out})
      times.set(block, point, t0);
  times.set(2, pp::stamps::issued, t0 + ms(3));
  const auto charged = times.charge(t0, t0 + ms(25), 2);
  BOOST_TEST(charged[0] + charged[1] + charged[2] + charged[3] == 0.025, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(charged[1] == 0.022, boost::test_tools::tolerance(1e-9));  // issued, and not yet read
}

BOOST_AUTO_TEST_SUITE_END()
