#include "../../pipeline/src/lent_batches.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

using penstock::pipeline::lent_batches;

BOOST_AUTO_TEST_SUITE(lent)

BOOST_AUTO_TEST_CASE(batches_that_come_back_in_any_order_pass_in_order_and_once) {
  lent_batches lent(3);
  for (std::uint64_t n = 0; n < 3; ++n) BOOST_TEST(lent.lend() == n);
  BOOST_TEST(!lent.has_room());
  BOOST_TEST(lent.out() == 3u);
  std::vector<std::uint64_t> passed;
  const auto note = [&](std::uint64_t number) { passed.push_back(number); };
  lent.bring_back(1, note);
  BOOST_TEST(passed.empty());
  BOOST_TEST(lent.in_order() == 0u);
  BOOST_TEST(lent.out() == 2u);
  BOOST_TEST(!lent.has_room());  // the oldest keeps all that were lent after it
  lent.bring_back(0, note);
  BOOST_TEST(passed == (std::vector<std::uint64_t>{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(lent.in_order() == 2u);
  BOOST_TEST(lent.lend() == 3u);
  BOOST_TEST(lent.lend() == 4u);
  BOOST_TEST(!lent.has_room());
  lent.bring_back(2, note);
  BOOST_TEST(passed.back() == 2u);
  BOOST_TEST(lent.out() == 2u);
}

BOOST_AUTO_TEST_CASE(threads_that_bring_back_at_once_pass_each_batch_once, *boost::unit_test::timeout(120)) {
  constexpr std::size_t threads = 3, most = 1000, rounds = 50;
  lent_batches lent(most);
  std::vector<std::atomic<int>> passes(rounds * most);
  std::mt19937 draw(1);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<std::uint64_t>> shares(threads);
    while (lent.has_room()) shares[draw() % threads].push_back(lent.lend());
    std::vector<std::jthread> users;
    for (const auto& share : shares)
      users.emplace_back([&] {
        for (const std::uint64_t number : share) lent.bring_back(number, [&](std::uint64_t one) { ++passes[one]; });
      });
    users.clear();
    BOOST_REQUIRE_EQUAL(lent.in_order(), (round + 1) * most);  // none is overlooked
    BOOST_REQUIRE_EQUAL(lent.out(), 0u);
  }
  std::uint64_t wrong = 0;
  for (const auto& count : passes) wrong += count == 1 ? 0 : 1;
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
