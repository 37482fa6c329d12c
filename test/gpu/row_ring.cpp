#include <penstock/gpu/row_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <random>
#include <stdexcept>
#include <vector>

using penstock::gpu::row_ring;

BOOST_AUTO_TEST_SUITE(row_rings)

BOOST_AUTO_TEST_CASE(a_fresh_ring_is_free) {
  const row_ring ring(10, 16);
  BOOST_TEST(ring.free_rows() == 10U);
  BOOST_TEST(ring.held_rows() == 0U);
  BOOST_TEST(ring.bytes() == 160U);
}

BOOST_AUTO_TEST_CASE(rows_come_and_go_in_order) {
  row_ring ring(10, 16);
  ring.produce(7);
  ring.consume(3);
  BOOST_TEST(ring.produced() == 7U);
  BOOST_TEST(ring.consumed() == 3U);
  BOOST_TEST(ring.held_rows() == 4U);
  BOOST_TEST(ring.free_rows() == 6U);
  ring.produce(6);
  BOOST_TEST(ring.free_rows() == 0U);
  ring.reset();
  BOOST_TEST(ring.free_rows() == 10U);
}

BOOST_AUTO_TEST_CASE(more_than_is_free_or_held_is_refused_and_changes_nothing) {
  row_ring ring(4, 1);
  ring.produce(3);
  BOOST_CHECK_THROW(ring.produce(2), std::invalid_argument);
  BOOST_CHECK_THROW(ring.consume(4), std::invalid_argument);
  BOOST_CHECK_THROW(ring.pieces(0, 5), std::invalid_argument);
  BOOST_TEST(ring.held_rows() == 3U);
  BOOST_CHECK_THROW(row_ring(0, 1), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_range_inside_is_one_piece) {
  const row_ring ring(10, 16);
  const auto at = ring.pieces(12, 5);
  BOOST_TEST(at.is_contiguous());
  BOOST_TEST(at.first.row == 2U);
  BOOST_TEST(at.first.rows == 5U);
  BOOST_TEST(at.first.offset_bytes == 32U);
  BOOST_TEST(at.first.bytes == 80U);
}

BOOST_AUTO_TEST_CASE(a_range_up_to_the_end_is_one_piece) {
  BOOST_TEST(row_ring(10, 16).pieces(5, 5).is_contiguous());
  BOOST_TEST(row_ring(10, 16).pieces(20, 10).is_contiguous());
}

BOOST_AUTO_TEST_CASE(a_range_over_the_end_is_two_pieces) {
  const auto at = row_ring(10, 16).pieces(18, 7);
  BOOST_TEST(!at.is_contiguous());
  BOOST_TEST(at.first.row == 8U);
  BOOST_TEST(at.first.rows == 2U);
  BOOST_TEST(at.second.row == 0U);
  BOOST_TEST(at.second.rows == 5U);
  BOOST_TEST(at.second.offset_bytes == 0U);
  BOOST_TEST(at.second.bytes == 80U);
}

// A ring of memory, written and read through its pieces, behaves as a queue.
BOOST_AUTO_TEST_CASE(rows_written_through_pieces_are_read_back_in_order) {
  std::mt19937 random(1);
  for (const std::uint64_t capacity : {1U, 2U, 3U, 7U, 64U}) {
    row_ring ring(capacity, 1);
    std::vector<std::uint64_t> rows(capacity);
    std::uint64_t next_in = 0, next_out = 0;
    const auto for_each_row = [&](std::uint64_t first, std::uint64_t count, auto&& use) {
      const auto at = ring.pieces(first, count);
      for (const auto& piece : {at.first, at.second})
        for (std::uint64_t n = 0; n < piece.rows; ++n) use(rows.at(piece.row + n));
    };
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t in = random() % (ring.free_rows() + 1);
      for_each_row(ring.produced(), in, [&](std::uint64_t& row) { row = next_in++; });
      ring.produce(in);
      const std::uint64_t out = random() % (ring.held_rows() + 1);
      for_each_row(ring.consumed(), out, [&](std::uint64_t& row) { BOOST_REQUIRE_EQUAL(row, next_out++); });
      ring.consume(out);
    }
    BOOST_TEST(next_out > 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
