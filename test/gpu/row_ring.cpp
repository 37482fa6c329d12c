#include <penstock/gpu/row_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

using penstock::gpu::row_ring;

BOOST_AUTO_TEST_SUITE(row_rings)

BOOST_AUTO_TEST_CASE(rows_lie_one_after_another_and_begin_again) {
  std::vector<std::byte> memory(160);
  const row_ring ring(memory.data(), 10, 16);
  BOOST_TEST(ring.bytes() == 160U);
  BOOST_TEST(ring.at(0) == memory.data());
  BOOST_TEST(ring.at(9) == memory.data() + 144);
  BOOST_TEST(ring.at(10) == memory.data());
  BOOST_TEST(ring.at(1'000'000'000'003) == memory.data() + 48);
}

BOOST_AUTO_TEST_CASE(a_range_is_contiguous_up_to_the_end_of_the_ring) {
  const row_ring ring(nullptr, 10, 16);
  BOOST_TEST(ring.contiguous(12, 5) == 5U);
  BOOST_TEST(ring.contiguous(5, 5) == 5U);
  BOOST_TEST(ring.contiguous(18, 7) == 2U);
  BOOST_TEST(ring.contiguous(20, 100) == 10U);
  BOOST_TEST(ring.contiguous(20, 0) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
