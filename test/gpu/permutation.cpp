#include <penstock/gpu/permutation.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using penstock::gpu::permutation;

namespace {

bool is_bijection(std::uint64_t size, std::uint64_t key) {
  const permutation draw(size, key);
  std::vector<bool> seen(size, false);
  for (std::uint64_t index = 0; index < size; ++index) {
    const std::uint64_t row = draw(index);
    if (row >= size || seen[row]) return false;
    seen[row] = true;
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(permutations)

BOOST_AUTO_TEST_CASE(every_small_size_is_a_bijection_under_several_keys) {
  for (std::uint64_t size = 0; size <= 300; ++size)
    for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{42}, ~std::uint64_t{0}})
      BOOST_TEST(is_bijection(size, key), "size " << size << ", key " << key);
}

BOOST_AUTO_TEST_CASE(sizes_around_powers_of_two_are_bijections) {
  for (const std::uint64_t size : {1000U, 1023U, 1024U, 1025U, 4096U, 4097U, 16384U, 16385U, 65535U, 65536U, 65537U})
    for (const std::uint64_t key : {std::uint64_t{7}, std::uint64_t{0x123456789abcdef0}})
      BOOST_TEST(is_bijection(size, key), "size " << size << ", key " << key);
}

BOOST_AUTO_TEST_CASE(sizes_of_64_bits_stay_inside_and_differ) {
  for (const std::uint64_t size : {(std::uint64_t{1} << 40) + 3, (std::uint64_t{1} << 62) + 1, ~std::uint64_t{0}}) {
    const permutation draw(size, 5);
    std::uint64_t previous = size;
    for (std::uint64_t index = 0; index < 1000; ++index) {
      const std::uint64_t row = draw(size - 1 - index);
      BOOST_TEST(row < size);
      BOOST_TEST(row != previous);
      previous = row;
    }
  }
}

BOOST_AUTO_TEST_CASE(the_identity_and_sizes_below_two_change_nothing) {
  BOOST_TEST(permutation::identity().is_identity());
  BOOST_TEST(permutation::identity()(123456789) == 123456789U);
  BOOST_TEST(permutation(1, 9)(0) == 0U);
  BOOST_TEST(permutation(0, 9).is_identity());
  BOOST_TEST(!permutation(2, 9).is_identity());
}

BOOST_AUTO_TEST_CASE(it_is_a_constant_expression) {
  constexpr permutation draw(10, 3);
  static_assert(draw(4) < 10);
}

// The draws of position 0 under many keys, and of many positions under one key, fall evenly into 64 bins. With 63
// degrees of freedom chi-square exceeds 130 with a probability near 1e-6; it is the same number in each run.
BOOST_AUTO_TEST_CASE(draws_spread_evenly_over_keys_and_positions) {
  constexpr std::uint64_t size = 6400, bins = 64;
  std::vector<double> by_key(bins, 0), displacement(bins, 0);
  for (std::uint64_t key = 0; key < size; ++key) by_key[permutation(size, key)(0) * bins / size] += 1;
  const permutation draw(size, 42);
  for (std::uint64_t index = 0; index < size; ++index)
    displacement[(draw(index) + size - index) % size * bins / size] += 1;
  for (const auto& counts : {by_key, displacement}) {
    double chi_square = 0;
    for (const double count : counts) chi_square += std::pow(count - 100, 2) / 100;
    BOOST_TEST(chi_square < 130);
    BOOST_TEST(chi_square > 20);  // nor more evenly than chance
  }
}

BOOST_AUTO_TEST_CASE(neighbours_do_not_stay_together) {
  constexpr std::uint64_t size = 10000;
  const permutation draw(size, 1);
  int adjacent = 0;
  for (std::uint64_t index = 0; index + 1 < size; ++index) {
    const std::uint64_t a = draw(index), b = draw(index + 1);
    if (a + 1 == b || b + 1 == a) ++adjacent;
  }
  BOOST_TEST(adjacent < 12);  // two are expected
}

// SplitMix64's first outputs for seed 1234567, as the reference implementation prints them (Vigna, splitmix64.c).
BOOST_AUTO_TEST_CASE(mix_is_splitmix64) {
  constexpr std::uint64_t increment = 0x9e3779b97f4a7c15u;
  BOOST_TEST(penstock::gpu::mix(1234567) == 6457827717110365317u);
  BOOST_TEST(penstock::gpu::mix(1234567 + increment) == 3203168211198807973u);
  BOOST_TEST(penstock::gpu::mix(1234567 + 2 * increment) == 9817491932198370423u);
}

// Ten indices in three lanes: lanes of 4, 3 and 3 turns lie one after another.
BOOST_AUTO_TEST_CASE(lanes_take_turns_and_lie_one_after_another) {
  const auto draw = permutation::dealt(10, 3, false, 0, 0, 0);
  const std::vector<std::uint64_t> expected{0, 4, 7, 1, 5, 8, 2, 6, 9, 3};
  for (std::uint64_t index = 0; index < 10; ++index) BOOST_TEST(draw(index) == expected[index]);
}

BOOST_AUTO_TEST_CASE(each_lane_is_permuted_by_a_key_of_its_own) {
  for (const std::uint64_t lanes : {2U, 3U, 8U})
    for (const std::uint64_t size : {1U, 2U, 7U, 64U, 1001U}) {
      const auto draw = permutation::dealt(size, lanes, true, 17, 100, 1000);
      std::uint64_t before = 0;
      for (std::uint64_t lane = 0; lane < lanes; ++lane) {
        const std::uint64_t turns = (size + lanes - 1 - lane) / lanes;
        const permutation own(turns, penstock::gpu::mix(17 ^ (100 + lane * 1000)));
        for (std::uint64_t turn = 0; turn < turns; ++turn)
          BOOST_REQUIRE_EQUAL(draw(turn * lanes + lane), before + own(turn));
        before += turns;
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
