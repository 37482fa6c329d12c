#include <penstock/pipeline/order.hpp>

#include "order_rows.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace pp = penstock::pipeline;
using penstock::test::is_every_row_once;
using penstock::test::rows_of;

BOOST_AUTO_TEST_SUITE(order)

BOOST_AUTO_TEST_CASE(sequential_rows_come_as_they_lie) {
  const pp::order order(pp::sequential{}, {.rows = 100, .row_bytes = 4});
  std::vector<std::uint64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0u);
  BOOST_TEST(rows_of(order, 5) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_row_comes_once_for_any_shape_run_and_pool) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const std::uint64_t rows = 1 + random() % 3000, run = 1 + random() % 200, pool = run + random() % 1000,
                        seed = random();
    const pp::order order(pp::shuffled{seed, run, pool}, {.rows = rows, .row_bytes = 8});
    for (const std::uint64_t epoch : {0u, 1u, 77u})
      BOOST_REQUIRE_MESSAGE(is_every_row_once(rows_of(order, epoch), rows), "rows " << rows << ", run " << run
                                                                                    << ", pool " << pool << ", seed "
                                                                                    << seed << ", epoch " << epoch);
  }
}

BOOST_AUTO_TEST_CASE(an_order_is_a_function_of_seed_and_epoch) {
  const pp::source_shape shape{.rows = 1000, .row_bytes = 8};
  const pp::order first(pp::shuffled{7, 10, 100}, shape), same(pp::shuffled{7, 10, 100}, shape),
      other(pp::shuffled{8, 10, 100}, shape);
  BOOST_TEST(rows_of(first, 3) == rows_of(same, 3));
  BOOST_TEST(rows_of(first, 3) != rows_of(first, 4));
  BOOST_TEST(rows_of(first, 3) != rows_of(other, 3));
}

BOOST_AUTO_TEST_CASE(extents_give_the_reading_rows_in_order_and_joined) {
  const pp::order order(pp::shuffled{3, 32, 128}, {.rows = 1003, .row_bytes = 8});
  std::vector<pp::extent> extents;
  order.read(2, 17, 900, extents);
  std::vector<std::uint64_t> rows;
  for (const auto& e : extents)
    for (std::uint64_t r = 0; r < e.count; ++r) rows.push_back(e.first + r);
  BOOST_REQUIRE_EQUAL(rows.size(), 900u);
  for (std::size_t i = 0; i < rows.size(); ++i) BOOST_REQUIRE_EQUAL(rows[i], order.reading_row(2, 17 + i));
  for (std::size_t i = 1; i < extents.size(); ++i)
    BOOST_TEST(extents[i - 1].first + extents[i - 1].count != extents[i].first);
}

BOOST_AUTO_TEST_CASE(reading_keeps_runs_together) {
  const pp::order order(pp::shuffled{3, 50, 200}, {.rows = 1000, .row_bytes = 8});
  for (std::uint64_t p = 0; p < 1000; ++p)
    if (p % 50) BOOST_REQUIRE_EQUAL(order.reading_row(0, p), order.reading_row(0, p - 1) + 1);
}

BOOST_AUTO_TEST_CASE(a_pool_mixes_the_rows_of_its_runs) {
  // 20 windows of 1000 rows, 10 runs each: a batch of 100 rows drawn from a window must hold rows of most of its runs.
  const pp::order order(pp::shuffled{11, 100, 1000}, {.rows = 20000, .row_bytes = 8});
  for (std::uint64_t first = 0; first < 20000; first += 100) {
    std::set<std::uint64_t> runs;
    for (std::uint64_t p = first; p < first + 100; ++p) runs.insert(order.row(0, p) / 100);
    BOOST_TEST(runs.size() >= 8u);
  }
}

BOOST_AUTO_TEST_CASE(a_pool_that_cannot_hold_a_run_is_refused) {
  BOOST_CHECK_EXCEPTION(
      pp::order(pp::shuffled{1, 100, 50}, {.rows = 1000, .row_bytes = 8}), std::invalid_argument,
      [](const auto& e) { return std::string(e.what()).find("pool of 50 rows") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(defaults_keep_chunks_whole_and_depend_on_the_source_alone) {
  const auto chunked = pp::order_defaults({.rows = 1 << 21, .row_bytes = 4096, .chunk_rows = 256});
  BOOST_TEST(chunked.run_rows == 256u);
  BOOST_TEST(chunked.pool_rows == 32u * 256u);
  const auto contiguous = pp::order_defaults({.rows = 1 << 21, .row_bytes = 4096, .chunk_rows = 1});
  BOOST_TEST(contiguous.run_rows * 4096 == 64u << 10);
  const auto tiny = pp::order_defaults({.rows = 10, .row_bytes = 4, .chunk_rows = 1});
  BOOST_TEST(tiny.run_rows <= 10u);
  BOOST_TEST(tiny.pool_rows == 10u);
}

BOOST_AUTO_TEST_CASE(positions_outside_the_epoch_are_refused) {
  const pp::order order(pp::sequential{}, {.rows = 10, .row_bytes = 4});
  std::vector<pp::extent> extents;
  BOOST_CHECK_THROW(order.read(0, 5, 6, extents), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(random_rows_come_once_and_far_from_their_neighbours) {
  const pp::order order(pp::random{5}, {.rows = 2000, .row_bytes = 8});
  const auto rows = rows_of(order, 1);
  BOOST_TEST(is_every_row_once(rows, 2000));
  BOOST_TEST(!order.is_pooled());
  BOOST_TEST(rows != rows_of(order, 2));
  // Neighbours stay neighbours with probability 2 / 2000: 2 are expected of 1999.
  std::size_t neighbours = 0;
  for (std::size_t p = 1; p < rows.size(); ++p) neighbours += rows[p] == rows[p - 1] + 1 || rows[p] + 1 == rows[p - 1];
  BOOST_TEST(neighbours < 12u);
}

BOOST_AUTO_TEST_SUITE_END()
