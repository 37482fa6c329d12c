#include <penstock/pipeline/order.hpp>

#include "order_rows.hpp"
#include "row_set.hpp"

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

BOOST_AUTO_TEST_CASE(positions_past_an_epoch_are_refused) {
  pp::row_set some(1000);
  some.keep_only({{100, 300}});
  some.count();
  const auto only = std::make_shared<const pp::row_set>(some);
  const pp::source_shape shape{.rows = 1000, .row_bytes = 8};
  for (const pp::order& order : {pp::order(pp::sequential{}, shape), pp::order(pp::shuffled{3, 32, 128}, shape),
                                 pp::order(pp::random{3}, shape, only), pp::order(pp::sequential{}, shape, only)}) {
    BOOST_TEST(order.row(0, order.rows() - 1) < 1000u);
    for (const std::uint64_t position : {order.rows(), order.rows() + 5, ~std::uint64_t{0}}) {
      BOOST_CHECK_THROW(order.row(0, position), std::invalid_argument);
      BOOST_CHECK_THROW(order.reading_row(0, position), std::invalid_argument);
    }
  }
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
  BOOST_TEST(contiguous.run_rows * 4096 == 256u << 10);
  const auto tiny = pp::order_defaults({.rows = 10, .row_bytes = 4, .chunk_rows = 1});
  BOOST_TEST(tiny.run_rows <= 10u);
  BOOST_TEST(tiny.pool_rows == 10u);
}

BOOST_AUTO_TEST_CASE(runs_are_as_long_as_chunks_that_are_decoded_whole) {
  const auto defaults = [](std::uint64_t rows, std::uint64_t row_bytes, std::vector<pp::decoded_field> decoded) {
    pp::source_shape shape{.rows = rows, .row_bytes = row_bytes};
    for (const auto& field : decoded) shape.chunk_rows = std::max(shape.chunk_rows, field.chunk_rows);
    shape.decoded = std::move(decoded);
    return pp::order_defaults(shape);
  };
  // h5py's chunks for 1,000,000 x 1024 float32: 32 MB side by side, four of which are a pool of 128 MiB.
  const auto tall = defaults(1'000'000, 4096, {{4096, 7813}});
  BOOST_TEST(tall.run_rows == 7813u);
  BOOST_TEST(tall.pool_rows * 4096 == 128u << 20);
  // Not decoded, the same chunks may be cut: 4 MiB, as ever.
  const auto plain = pp::order_defaults({.rows = 1'000'000, .row_bytes = 4096, .chunk_rows = 7813});
  BOOST_TEST(plain.run_rows == 1024u);
  BOOST_TEST(plain.pool_rows == 32u * 1024);
  // 80 MB side by side: two are more than 128 MiB, and still two are held. 300 MB: cut in three.
  const auto taller = defaults(10'000'000, 4096, {{4096, 19'532}});
  BOOST_TEST(taller.run_rows == 19'532u);
  BOOST_TEST(taller.pool_rows == 2u * 19'532);
  const auto tallest = defaults(10'000'000, 4096, {{4096, 75'000}});
  BOOST_TEST(tallest.run_rows == 25'000u);
  BOOST_TEST(tallest.pool_rows == 2u * 25'000);
  // Chunks of 1 MiB are whole runs anyway; a dataset shorter than its chunk is one run.
  BOOST_TEST(defaults(2'000'000, 4096, {{4096, 256}}).run_rows == 256u);
  BOOST_TEST(defaults(3000, 4096, {{4096, 7813}}).run_rows == 3000u);
  BOOST_TEST(defaults(0, 4096, {{4096, 7813}}).run_rows == 1u);
}

BOOST_AUTO_TEST_CASE(a_small_field_in_tall_chunks_does_not_lengthen_runs) {
  // Labels of 4 bytes in chunks of 100,000 rows beside images in chunks of 256: runs of 4 MiB end where images' do.
  const auto run =
      pp::order_defaults(
          {.rows = 1'000'000, .row_bytes = 3076, .chunk_rows = 100'000, .decoded = {{3072, 256}, {4, 100'000}}})
          .run_rows;
  BOOST_TEST(run == (4u << 20) / 3076 / 256 * 256);
}

BOOST_AUTO_TEST_CASE(a_pool_that_is_asked_for_alone_holds_32_runs) {
  const pp::source_shape rows{.rows = 200'000, .row_bytes = 64};
  for (const std::uint64_t pool : {4000u, 8000u, 40'000u}) {
    const auto chosen = pp::order_defaults(rows, {.pool_rows = pool});
    BOOST_TEST(chosen.run_rows == pool / 32);
    BOOST_TEST(chosen.pool_rows == pool);
    BOOST_TEST(pp::order(pp::shuffled{.seed = 1, .pool_rows = pool}, rows).run_rows() == pool / 32);
  }
  BOOST_TEST(pp::order_defaults(rows, {.pool_rows = 1}).run_rows == 1u);
  BOOST_TEST(pp::order_defaults(rows, {.pool_rows = 190'000}).run_rows == 4096u);  // 256 KiB, as without a wish
  // Chunks that are decoded whole stay so up to a quarter of the pool; of larger ones, equal parts: 100 rows in 3.
  const pp::source_shape packed{.rows = 20'000, .row_bytes = 1024, .chunk_rows = 100, .decoded = {{1024, 100}}};
  BOOST_TEST(pp::order_defaults(packed, {.pool_rows = 1000}).run_rows == 100u);
  BOOST_TEST(pp::order_defaults(packed, {.pool_rows = 400}).run_rows == 100u);
  BOOST_TEST(pp::order_defaults(packed, {.pool_rows = 150}).run_rows == 34u);
}

BOOST_AUTO_TEST_CASE(a_run_that_is_asked_for_alone_has_a_pool_of_32_as_far_as_128_mib_go_and_of_two_at_least) {
  const pp::source_shape rows{.rows = 2'000'000, .row_bytes = 4096};
  const auto pool_for = [&](std::uint64_t run) { return pp::order_defaults(rows, {.run_rows = run}).pool_rows; };
  BOOST_TEST(pool_for(100) == 32u * 100);
  BOOST_TEST(pool_for(10) == 32u * 64);  // as without the wish: runs of 256 KiB
  BOOST_TEST(pool_for(2048) == 32'768u);
  BOOST_TEST(pool_for(40'000) == 80'000u);
  BOOST_TEST(pool_for(1'500'000) == 2'000'000u);
}

BOOST_AUTO_TEST_CASE(a_shard_gets_other_rows_in_every_epoch_though_they_are_few) {
  const pp::source_shape few{.rows = 1000, .row_bytes = 4};  // a run of 256 KiB would be all of them
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    const pp::order order(pp::shuffled{.seed = 1}, few, nullptr, {.shards = 4, .rank = rank});
    BOOST_TEST(order.run_rows() == 1000u / 4 / 8);
    std::set<std::vector<std::uint64_t>> sets;
    std::set<std::uint64_t> seen;
    for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
      const auto rows = penstock::test::sorted(rows_of(order, epoch));
      sets.insert(rows);
      seen.insert(rows.begin(), rows.end());
    }
    BOOST_TEST(sets.size() == 40u);
    BOOST_TEST(seen.size() >= 990u);  // the last, short run is dealt by rows, a few to each
  }
}

BOOST_AUTO_TEST_CASE(runs_that_are_too_long_for_their_shards_are_dealt_from_another_row_on_in_every_epoch) {
  std::set<std::uint64_t> seen, begun;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      const pp::order order(pp::shuffled{.seed = 1, .run_rows = 1000, .pool_rows = 1000}, {.rows = 1000}, nullptr,
                            {.shards = 4, .rank = rank});
      const auto rows = rows_of(order, epoch);
      all.insert(all.end(), rows.begin(), rows.end());
      if (rank > 0) continue;
      seen.insert(rows.begin(), rows.end());
      begun.insert(order.reading_row(epoch, 0));
      BOOST_TEST(order.description().find("from a drawn row on") != std::string::npos);
    }
    BOOST_TEST(is_every_row_once(all, 1000));
  }
  BOOST_TEST(seen.size() == 1000u);
  BOOST_TEST(begun.size() > 30u);
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
