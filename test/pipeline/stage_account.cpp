#include "stage_account.hpp"

#include <boost/test/unit_test.hpp>

namespace pp = penstock::pipeline;
using ms = std::chrono::milliseconds;

namespace {
const pp::clock::time_point t0{std::chrono::seconds(1000)};
const auto nearly = boost::test_tools::tolerance(1e-9);
}  // namespace

BOOST_AUTO_TEST_SUITE(stage_account)

BOOST_AUTO_TEST_CASE(busy_idle_and_waiting_time_are_added_up_over_workers_and_blocks) {
  pp::stage_account stage;
  stage.set_workers(2);
  stage.begin_run(t0);
  stage.arrive(t0 + ms(10));     // 2 workers starved for 10 ms
  stage.start(t0 + ms(12));      // held up for 2 ms with a block in front
  stage.arrive(t0 + ms(20), 3);  // one at work, one starved for 8 ms
  stage.start(t0 + ms(21));      // one at work, one held up for 1 ms
  stage.end(t0 + ms(31), 100);   // both at work for 10 ms
  stage.end(t0 + ms(41), 50);    // one at work for 10 ms, one held up
  stage.end_run(t0 + ms(50));    // nobody at work, two blocks left
  stage.arrive(t0 + ms(60), 5);  // after the run: does not count
  const auto sums = stage.read(t0 + ms(100));
  BOOST_TEST(sums.seconds == 0.050, nearly);
  BOOST_TEST(sums.busy_seconds == 0.008 + 0.001 + 0.020 + 0.010, nearly);
  BOOST_TEST(sums.starved_seconds == 0.020 + 0.008, nearly);
  BOOST_TEST(sums.held_up_seconds == 0.004 + 0.001 + 0.010 + 0.018, nearly);
  BOOST_TEST(sums.busy_seconds + sums.starved_seconds + sums.held_up_seconds == 2 * 0.050, nearly);
  BOOST_TEST(sums.waiting_seconds == 0.002 + 3 * 0.001 + 2 * 0.029, nearly);
  BOOST_TEST(sums.blocks == 2u);
  BOOST_TEST(sums.bytes == 150u);
  BOOST_TEST(sums.most_at_work == 2u);
}

BOOST_AUTO_TEST_CASE(a_run_in_progress_counts_until_now_and_the_next_one_is_added) {
  pp::stage_account stage;
  stage.begin_run(t0);
  stage.begin(t0);
  BOOST_TEST(stage.read(t0 + ms(5)).busy_seconds == 0.005, nearly);
  stage.end_run(t0 + ms(10));
  stage.begin_run(t0 + ms(100));  // what was at work is over
  BOOST_TEST(stage.read(t0 + ms(105)).busy_seconds == 0.010, nearly);
  BOOST_TEST(stage.read(t0 + ms(105)).seconds == 0.015, nearly);
}

BOOST_AUTO_TEST_CASE(no_more_are_at_work_in_the_mean_than_there_are_workers_though_there_were_more_before) {
  pp::stage_account stage;
  stage.set_workers(3);
  stage.begin_run(t0);
  for (int n = 0; n < 3; ++n) stage.begin(t0);
  for (int n = 0; n < 2; ++n) stage.end(t0 + ms(10), 0);
  stage.set_workers(t0 + ms(10), 1);
  BOOST_TEST(stage.read(t0 + ms(20)).busy_seconds == 0.040, nearly);  // two at work in the mean
  BOOST_TEST(stage.read(t0 + ms(20)).workers == 2u);
  BOOST_TEST(stage.read(t0 + ms(2000)).workers == 2u);
  stage.set_workers(t0 + ms(2000), 4);
  BOOST_TEST(stage.read(t0 + ms(2001)).workers == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
