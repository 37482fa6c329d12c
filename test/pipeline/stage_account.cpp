#include "stage_account.hpp"
#include "pauses.hpp"
#include "wait_sum.hpp"

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
}

BOOST_AUTO_TEST_CASE(a_run_in_progress_counts_until_now_and_the_next_one_is_added) {
  pp::stage_account stage;
  stage.begin_run(t0);
  stage.arrive(t0);
  stage.start(t0);
  BOOST_TEST(stage.read(t0 + ms(5)).busy_seconds == 0.005, nearly);
  stage.end_run(t0 + ms(10));
  stage.begin_run(t0 + ms(100));  // what was at work is over
  BOOST_TEST(stage.read(t0 + ms(105)).busy_seconds == 0.010, nearly);
  BOOST_TEST(stage.read(t0 + ms(105)).seconds == 0.015, nearly);
}

BOOST_AUTO_TEST_CASE(workers_are_as_many_as_now_and_their_time_is_of_as_many_as_there_were) {
  pp::stage_account stage;
  stage.set_workers(3);
  stage.begin_run(t0);
  stage.arrive(t0, 3);
  for (int n = 0; n < 3; ++n) stage.start(t0);
  for (int n = 0; n < 2; ++n) stage.end(t0 + ms(10), 0);
  stage.set_workers(t0 + ms(10), 1);
  const auto busy = stage.read(t0 + ms(2000));
  BOOST_TEST(busy.workers == 1u);
  BOOST_TEST(busy.busy_seconds == 2.020, nearly);  // 3 for 10 ms, 1 for 1990 ms
  BOOST_TEST(busy.starved_seconds + busy.held_up_seconds == 0);
  stage.set_workers(t0 + ms(2000), 4);
  const auto idle = stage.read(t0 + ms(2001));
  BOOST_TEST(idle.workers == 4u);
  BOOST_TEST(idle.busy_seconds == 2.021, nearly);
  BOOST_TEST(idle.starved_seconds == 0.003, nearly);
}

BOOST_AUTO_TEST_CASE(blocks_count_during_a_pause_and_time_does_not) {
  pp::stage_account stage;
  stage.begin_run(t0);
  stage.arrive(t0, 2);
  stage.start(t0);
  stage.pause(t0 + ms(10));
  BOOST_TEST(stage.read(t0 + ms(60)).seconds == 0.010, nearly);
  stage.end(t0 + ms(70), 100);
  stage.start(t0 + ms(80));
  stage.resume(t0 + ms(110));
  const auto sums = stage.read(t0 + ms(115));
  BOOST_TEST(sums.seconds == 0.015, nearly);
  BOOST_TEST(sums.busy_seconds == 0.015, nearly);
  BOOST_TEST(sums.waiting_seconds == 0.010, nearly);
  BOOST_TEST(sums.held_up_seconds + sums.starved_seconds == 0, nearly);
  BOOST_TEST(sums.blocks == 1u);
  BOOST_TEST(sums.bytes == 100u);
}

BOOST_AUTO_TEST_CASE(what_counts_of_a_time_is_what_was_not_paused) {
  pp::pauses pauses;
  const auto paused = [&](int when) { return pauses.of(t0 + ms(when)).paused; };
  const auto early = pauses.of(t0);
  pauses.begin(t0 + ms(10));
  pauses.begin(t0 + ms(15));  // in it already
  BOOST_TEST((paused(5) == ms(0)));
  BOOST_TEST((paused(30) == ms(20)));
  BOOST_TEST((pauses.counted(t0 + ms(8), t0 + ms(30)) == ms(2)));
  const auto within = pauses.of(t0 + ms(30));
  pauses.end(t0 + ms(40));
  pauses.end(t0 + ms(45));
  BOOST_TEST((pauses.counted(within, t0 + ms(47)) == ms(7)));
  for (int n = 1; n <= 5; ++n) {
    pauses.begin(t0 + ms(100 * n));
    pauses.end(t0 + ms(100 * n + 10));
  }
  BOOST_TEST((pauses.counted(t0 + ms(495), t0 + ms(600)) == ms(95)));
  BOOST_TEST((pauses.counted(early, t0 + ms(600)) == ms(600 - 30 - 5 * 10)));
  BOOST_TEST((pauses.counted(within, t0 + ms(505)) == ms(505 - 30 - 10 - 4 * 10 - 5)));
}

BOOST_AUTO_TEST_CASE(a_wait_that_has_no_end_counts_until_now_without_pauses) {
  pp::pauses pauses;
  pp::wait_sum waited(pauses);
  const auto seconds = [&](int when) { return waited.seconds(t0 + ms(when)); };
  waited.end(t0);  // none began
  BOOST_TEST(seconds(5) == 0);
  waited.begin(t0 + ms(10));
  BOOST_TEST(seconds(9) == 0);  // whoever asks read the clock before
  BOOST_TEST(seconds(30) == 0.020, nearly);
  for (int n = 1; n <= 2; ++n) {  // of which all but 10 ms each are left out, also when the wait is over
    pauses.begin(t0 + ms(100 * n));
    BOOST_TEST(seconds(100 * n + 50) == 0.090 + 0.010 * (n - 1), nearly);
    pauses.end(t0 + ms(100 * n + 90));
  }
  waited.end(t0 + ms(300));
  BOOST_TEST(seconds(1000) == 0.110, nearly);
  waited.begin(t0 + ms(1100));
  BOOST_TEST(seconds(1105) == 0.115, nearly);
  waited.end(t0 + ms(1110));
  waited.end(t0 + ms(1200));  // it is over already
  BOOST_TEST(seconds(1300) == 0.120, nearly);
}

BOOST_AUTO_TEST_SUITE_END()
