#include "reader_tuner.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace pp = penstock::pipeline;

namespace {

/// A machine that reads rate(readers) blocks in a second, one after another.
class machine {
 public:
  machine(std::size_t start, std::size_t most, std::function<double(std::size_t)> rate)
      : tuner(start, most), rate_(std::move(rate)), readers_(start) {
    tuner.begin_run();
  }
  /// Blocks wait for a reader, unless so many are at work.
  std::size_t run(double seconds, std::size_t enough = 1000) {
    for (const auto end = now_ + pp::clock::duration(std::llround(seconds * 1e9)); now_ < end;) {
      now_ += pp::clock::duration(std::llround(1e9 / rate_(readers_)));
      readers_ = tuner.block_read(now_, readers_ < enough);
      fewest_seen = std::min(fewest_seen, readers_), most_seen = std::max(most_seen, readers_);
    }
    return tuner.read().readers;
  }
  pp::reader_tuner tuner;
  std::size_t fewest_seen = 1000, most_seen = 0;

 private:
  std::function<double(std::size_t)> rate_;
  pp::clock::time_point now_{std::chrono::seconds(1000)};
  std::size_t readers_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(reader_tuner)

BOOST_AUTO_TEST_CASE(storage_that_answers_late_gets_as_many_readers_as_there_may_be) {
  machine m(4, 32, [](std::size_t readers) { return 250.0 * static_cast<double>(readers); });
  BOOST_TEST(m.run(3) == 32u);
  BOOST_TEST(m.most_seen == 32u);
}

BOOST_AUTO_TEST_CASE(it_stops_where_more_readers_are_not_faster) {
  machine m(2, 16, [](std::size_t readers) { return 500.0 * static_cast<double>(std::min<std::size_t>(readers, 5)); });
  BOOST_TEST(m.run(3) == 5u);
  const auto found = m.tuner.read();
  BOOST_TEST(found.start == 2u);
  BOOST_TEST(found.most == 16u);
  BOOST_REQUIRE(found.measured.size() >= 5u);
  BOOST_TEST(found.measured.front().readers == 2u);
  BOOST_TEST(found.measured.front().blocks_per_second == 1000, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(storage_that_many_readers_slow_down_gets_fewer_but_one_at_least) {
  machine m(8, 16, [](std::size_t readers) { return 8000.0 / static_cast<double>(readers); });
  BOOST_TEST(m.run(10) == 1u);
}

BOOST_AUTO_TEST_CASE(where_reading_holds_nothing_up_nothing_is_tried) {
  machine m(4, 16, [](std::size_t) { return 1000.0; });
  BOOST_TEST(m.run(5, 0) == 4u);
  BOOST_TEST(m.fewest_seen == 4u);
  BOOST_TEST(m.most_seen == 4u);
  BOOST_TEST(m.tuner.read().measured.empty());
}

BOOST_AUTO_TEST_CASE(a_number_that_is_enough_is_kept) {
  machine m(4, 16, [](std::size_t readers) { return 250.0 * static_cast<double>(readers); });
  BOOST_TEST(m.run(5, 6) == 6u);
  BOOST_TEST(m.most_seen == 6u);
}

BOOST_AUTO_TEST_CASE(small_differences_change_nothing_and_are_looked_for_ever_less_often) {
  std::uint64_t calls = 0, elsewhere = 0;
  machine m(12, 24, [&](std::size_t readers) {
    ++calls;
    if (readers != 12) ++elsewhere;
    return 20'000 + 400 * std::sin(static_cast<double>(calls) / 1000);
  });
  BOOST_TEST(m.run(60) == 12u);
  BOOST_TEST(elsewhere > 0u);
  BOOST_TEST(elsewhere < calls / 50);
}

BOOST_AUTO_TEST_CASE(one_reader_that_must_stay_alone_does) {
  machine m(1, 1, [](std::size_t) { return 1000.0; });
  BOOST_TEST(m.run(1) == 1u);
}

BOOST_AUTO_TEST_CASE(a_pause_between_runs_does_not_count) {
  machine m(4, 8, [](std::size_t readers) { return 250.0 * static_cast<double>(readers); });
  m.run(0.03);
  m.tuner.begin_run();
  m.tuner.block_read(pp::clock::time_point{std::chrono::seconds(5000)}, true);
  BOOST_TEST(m.tuner.read().readers == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
