#include "stamps.hpp"

#include <boost/test/unit_test.hpp>

#include <numeric>

namespace pp = penstock::pipeline;
using ms = std::chrono::milliseconds;

namespace {

constexpr pp::way plain{1, 0};  // no transforms
const pp::clock::time_point t0{std::chrono::seconds(1000)};
const auto nearly = boost::test_tools::tolerance(1e-9);

/// A block that passed all its points at once, at `when`.
void pass(pp::stamps& times, std::uint64_t block, pp::clock::time_point when) {
  times.open(block, when);
  for (std::size_t p = 0; p <= times.of().arrived(); ++p) times.set(block, p, when);
}

std::vector<double> charged(pp::stamps& times, pp::clock::time_point begin, pp::clock::time_point end,
                            std::uint64_t position, std::uint64_t last) {
  std::vector<double> seconds(times.of().states());
  times.charge(begin, end, position, last, seconds);
  return seconds;
}

double sum(const std::vector<double>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

}  // namespace

BOOST_AUTO_TEST_SUITE(stamps)

// Blocks of 10 rows.
BOOST_AUTO_TEST_CASE(a_wait_is_charged_to_the_state_of_the_block_at_the_head_of_the_line) {
  pp::stamps times(8, plain);
  times.open(0, t0 - ms(61));
  times.set(0, plain.has_slot, t0 - ms(60));
  times.set(0, plain.let_in, t0 - ms(50));
  times.set(0, plain.began(0), t0 + ms(4));
  times.set(0, plain.ended(0), t0 + ms(10));
  times.set(0, plain.came_out(), t0 + ms(15));
  times.set(0, plain.arrived(), t0 + ms(17));
  times.take_piece(1, 10, t0 + ms(18));
  times.set_piece(plain.gathered(), t0 + ms(19));
  times.open(1, t0 + ms(19));
  times.set(1, plain.has_slot, t0 + ms(20));
  times.set(1, plain.let_in, t0 + ms(22));
  times.set(1, plain.began(0), t0 + ms(23));
  times.set(1, plain.ended(0), t0 + ms(50));
  times.set(1, plain.came_out(), t0 + ms(50));
  times.set(1, plain.arrived(), t0 + ms(51));
  times.take_piece(2, 20, t0 + ms(55));
  times.set_piece(plain.gathered(), t0 + ms(58));
  times.take_piece(3, 30, t0 + ms(59));  // of a later block: not waited for
  const auto seconds = charged(times, t0, t0 + ms(60), 15, 1);
  BOOST_TEST(seconds[plain.has_slot] == 0.001, nearly);    // 19 to 20
  BOOST_TEST(seconds[plain.let_in] == 0.002, nearly);      // 20 to 22
  BOOST_TEST(seconds[plain.began(0)] == 0.005, nearly);    // 0 to 4, 22 to 23
  BOOST_TEST(seconds[plain.ended(0)] == 0.033, nearly);    // 4 to 10, 23 to 50
  BOOST_TEST(seconds[plain.came_out()] == 0.005, nearly);  // 10 to 15
  BOOST_TEST(seconds[plain.arrived()] == 0.003, nearly);   // 15 to 17, 50 to 51
  BOOST_TEST(seconds[plain.taken()] == 0.005, nearly);     // 17 to 18, 51 to 55
  BOOST_TEST(seconds[plain.gathered()] == 0.004, nearly);  // 18 to 19, 55 to 58
  BOOST_TEST(seconds[plain.points()] == 0.002, nearly);    // handed over
  BOOST_TEST(sum(seconds) == 0.060, nearly);
}

BOOST_AUTO_TEST_CASE(a_block_that_is_not_in_the_line_has_no_slot_to_wait_for_also_where_an_older_one_left_its_marks) {
  pp::stamps times(4, plain);
  for (std::uint64_t block = 0; block < 6; ++block) pass(times, block, t0);
  const auto seconds = charged(times, t0, t0 + ms(25), 60, 6);  // block 6 takes the place of block 2
  BOOST_TEST(seconds[plain.in_line] == 0.025, nearly);
  BOOST_TEST(sum(seconds) == 0.025, nearly);
  times.open(6, t0 + ms(30));
  const auto more = charged(times, t0 + ms(25), t0 + ms(40), 60, 6);
  BOOST_TEST(more[plain.in_line] == 0.005, nearly);
  BOOST_TEST(more[plain.has_slot] == 0.010, nearly);  // it has none yet
}

BOOST_AUTO_TEST_CASE(blocks_that_went_by_while_nobody_waited_are_behind) {
  pp::stamps times(4, plain);
  for (std::uint64_t block = 0; block < 9; ++block) {
    pass(times, block, t0);
    times.take_piece(block + 1, 10 * (block + 1), t0);
    times.set_piece(plain.gathered(), t0);
  }
  times.open(9, t0);
  times.set(9, plain.has_slot, t0);
  times.set(9, plain.let_in, t0);
  times.set(9, plain.began(0), t0 + ms(1));
  const auto seconds = charged(times, t0, t0 + ms(6), 95, 9);
  BOOST_TEST(seconds[plain.has_slot] == 0, nearly);
  BOOST_TEST(seconds[plain.began(0)] == 0.001, nearly);
  BOOST_TEST(seconds[plain.ended(0)] == 0.005, nearly);
}

BOOST_AUTO_TEST_CASE(rows_of_a_pool_wait_for_the_pieces_before_theirs) {
  pp::stamps times(8, plain);
  for (std::uint64_t block = 0; block < 3; ++block) pass(times, block, t0 + ms(2));
  for (int piece = 0; piece < 4; ++piece) {  // all draw from the three blocks
    times.take_piece(3, 10 * (static_cast<std::uint64_t>(piece) + 1), t0 + ms(2 + 5 * piece));
    times.set_piece(plain.gathered(), t0 + ms(6 + 5 * piece));
  }
  const auto seconds = charged(times, t0, t0 + ms(20), 29, 2);  // of the third piece, which is out after 16 ms
  BOOST_TEST(seconds[plain.in_line] == 0.002, nearly);
  BOOST_TEST(seconds[plain.gathered()] == 0.012, nearly);  // three gathers of 4 ms
  BOOST_TEST(seconds[plain.taken()] == 0.002, nearly);     // and 1 ms between them
  BOOST_TEST(seconds[plain.points()] == 0.004, nearly);
  const auto next = charged(times, t0 + ms(20), t0 + ms(22), 31, 2);  // the fourth is out after 21 ms
  BOOST_TEST(next[plain.gathered()] == 0.001, nearly);
  BOOST_TEST(next[plain.points()] == 0.001, nearly);
}

BOOST_AUTO_TEST_CASE(transforms_have_states_of_their_own) {
  constexpr pp::way way{3, 2};
  pp::stamps times(4, way);
  times.open(0, t0 + ms(1));
  for (std::size_t p = way.has_slot; p <= way.arrived(); ++p) times.set(0, p, t0 + ms(static_cast<int>(p) + 1));
  times.take_piece(1, 10, t0 + ms(static_cast<int>(way.taken()) + 1));
  for (std::size_t p = way.gathered(); p < way.points(); ++p) times.set_piece(p, t0 + ms(static_cast<int>(p) + 1));
  const auto seconds = charged(times, t0, t0 + ms(100), 0, 0);
  for (std::size_t p = 0; p < way.points(); ++p) BOOST_TEST(seconds[p] == 0.001, nearly);
  BOOST_TEST(way.points() == 3u + 2 * 3 + 4 + 2);
  BOOST_TEST(sum(seconds) == 0.100, nearly);
}

// Rows that are there are not handed over before it is done with that.
BOOST_AUTO_TEST_CASE(who_reads_another_block_meanwhile_waits_for_reading) {
  pp::stamps times(8, plain);
  pass(times, 0, t0 - ms(10));
  times.set(0, plain.ended(0), t0 + ms(3));
  times.set(0, plain.came_out(), t0 + ms(3));
  times.set(0, plain.arrived(), t0 + ms(3));
  times.take_piece(1, 10, t0 + ms(3));
  times.set_piece(plain.gathered(), t0 + ms(3));
  std::vector<double> seconds(times.of().states());
  times.charge(t0, t0 + ms(10), 9, 0, seconds, t0 + ms(8));
  BOOST_TEST(seconds[plain.ended(0)] == 0.008, nearly);
  BOOST_TEST(seconds[plain.points()] == 0.002, nearly);
  times.charge(t0 + ms(12), t0 + ms(13), 9, 0, seconds, t0 + ms(8));  // that was before this wait
  BOOST_TEST(seconds[plain.points()] == 0.003, nearly);
}

BOOST_AUTO_TEST_SUITE_END()
