#include "dealing.hpp"

#include "order_rows.hpp"

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <random>
#include <string>

namespace pp = penstock::pipeline;
using penstock::test::extents_are_the_reading_rows;
using penstock::test::is_every_row_once;
using penstock::test::rows_of;
using penstock::test::sorted;

namespace {

/// The rows of one step of all ranks together.
std::vector<std::uint64_t> step_of(const std::vector<std::vector<std::uint64_t>>& of_ranks, std::uint64_t step,
                                   std::uint64_t batch_rows) {
  std::vector<std::uint64_t> all;
  for (const auto& rows : of_ranks)
    for (std::uint64_t p = step * batch_rows; p < std::min<std::uint64_t>((step + 1) * batch_rows, rows.size()); ++p)
      all.push_back(rows[p]);
  return sorted(all);
}

std::vector<std::vector<std::uint64_t>> all_ranks(const pp::order_options& how, std::uint64_t rows,
                                                  std::uint64_t shards, std::uint64_t ranks) {
  std::vector<std::vector<std::uint64_t>> of_ranks;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const pp::order order(how, {.rows = rows, .row_bytes = 8}, nullptr,
                          {.shards = shards, .rank = rank, .ranks = ranks});
    BOOST_REQUIRE(extents_are_the_reading_rows(order, 4));
    of_ranks.push_back(rows_of(order, 4));
  }
  return of_ranks;
}

void fails_with(const pp::shard_options& share, const std::string& part) {
  BOOST_CHECK_EXCEPTION(pp::order(pp::sequential{}, {.rows = 10}, nullptr, share), std::invalid_argument,
                        [&](const auto& e) { return std::string(e.what()).find(part) != std::string::npos; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dealing)

// 23 rows in runs of 4, dealt to 2 shards: runs 0 and 2 of the sequence go to shard 0, runs 1 and 3 to shard 1; the
// seven rows that are left, 16 to 22, are cut into four and three.
BOOST_AUTO_TEST_CASE(runs_are_dealt_in_turn_and_the_rest_by_rows) {
  const std::vector<std::vector<std::uint64_t>> expected{{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19},
                                                         {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22}};
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const pp::dealing dealt({.shards = 2, .rank = rank}, 23, 4);
    BOOST_TEST(dealt.rows() == expected[rank].size());
    for (std::uint64_t row = 0; row < dealt.rows(); ++row) {
      const auto at = dealt.at(0, row);
      BOOST_TEST(at.first == expected[rank][row]);
      for (std::uint64_t i = 0; i < at.rows; ++i) BOOST_TEST(expected[rank][row + i] == at.first + i);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_row_comes_once_for_any_shape_shards_and_ranks_which_differ_by_a_row_at_most) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const std::uint64_t rows = random() % 3000, run = 1 + random() % 100, pool = run + random() % 500,
                        ranks = 1 + random() % 5, shards = ranks * (1 + random() % 4), seed = random();
    const pp::order_options options[] = {pp::sequential{}, pp::shuffled{seed, run, pool}, pp::random{seed}};
    for (const pp::order_options& how : options) {
      std::vector<std::uint64_t> all;
      for (const auto& some : all_ranks(how, rows, shards, ranks)) {
        BOOST_REQUIRE(some.size() == rows / ranks || some.size() == (rows + ranks - 1) / ranks);
        all.insert(all.end(), some.begin(), some.end());
      }
      BOOST_REQUIRE_MESSAGE(is_every_row_once(all, rows), "rows " << rows << ", run " << run << ", pool " << pool
                                                                  << ", shards " << shards << ", ranks " << ranks
                                                                  << ", seed " << seed);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_number_of_ranks_sees_the_same_rows_in_each_step) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 40; ++trial) {
    const std::uint64_t rows = 1 + random() % 2000, run = 1 + random() % 40, pool = run + random() % 200,
                        seed = random(), step_rows = 8 * (1 + random() % 6);
    const pp::order_options options[] = {pp::sequential{}, pp::shuffled{seed, run, pool}, pp::random{seed}};
    for (const pp::order_options& how : options) {
      const auto eight = all_ranks(how, rows, 8, 8);
      for (const std::uint64_t ranks : {1U, 2U, 4U}) {
        const auto fewer = all_ranks(how, rows, 8, ranks);
        for (std::uint64_t step = 0; step * step_rows < rows; ++step)
          BOOST_REQUIRE(step_of(fewer, step, step_rows / ranks) == step_of(eight, step, step_rows / 8));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_does_not_depend_on_who_serves_what) {
  const auto described = [](std::uint64_t rank, std::uint64_t ranks) {
    return pp::order(pp::shuffled{.seed = 1, .run_rows = 10, .pool_rows = 500}, {.rows = 203, .row_bytes = 8}, nullptr,
                     {.shards = 4, .rank = rank, .ranks = ranks})
        .description();
  };
  BOOST_TEST(described(0, 4) == described(3, 4));
  BOOST_TEST(described(0, 4) == described(1, 2));
  BOOST_TEST(described(0, 4) == described(0, 1));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_served_alike_is_refused) {
  fails_with({.shards = 2, .rank = 2}, "no rank 2 of 2");
  fails_with({.shards = 8, .rank = 0, .ranks = 3}, "8 shards cannot be served by 3 processes alike");
  fails_with({.shards = 4, .rank = 0, .ranks = 8}, "4 shards cannot be served by 8 processes alike");
  fails_with({.shards = 0}, "0 shards");
}

BOOST_AUTO_TEST_SUITE_END()
