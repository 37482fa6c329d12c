#include <penstock/gpu/slot_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

using penstock::gpu::slot_ring;

BOOST_AUTO_TEST_SUITE(slot_rings)

BOOST_AUTO_TEST_CASE(slots_are_taken_in_turn_while_there_are_free_ones) {
  std::vector<std::byte> memory(48);
  slot_ring slots(memory, 16, 3);
  for (std::uint64_t use = 0; use < 3; ++use) {
    BOOST_TEST(slots.has_free());
    BOOST_TEST(slots.take() == use);
    BOOST_TEST(slots.at(use) == memory.data() + 16 * use);
  }
  BOOST_TEST(!slots.has_free());
  BOOST_TEST(slots.in_use() == 3U);
}

BOOST_AUTO_TEST_CASE(a_slot_given_back_is_taken_again) {
  std::vector<std::byte> memory(32);
  slot_ring slots(memory, 16, 2);
  slots.take(), slots.take();
  slots.give_back_to(1);
  BOOST_TEST(slots.in_use() == 1U);
  BOOST_TEST(slots.take() == 2U);
  BOOST_TEST(slots.at(2) == memory.data());
  slots.give_back_to(1);  // what was given back before stays so
  BOOST_TEST(!slots.has_free());
}

BOOST_AUTO_TEST_CASE(without_slots_there_is_no_credit) {
  const slot_ring none;
  BOOST_TEST(!none.has_free());
  BOOST_TEST(none.at(5) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
