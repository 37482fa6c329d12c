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

BOOST_AUTO_TEST_CASE(threads_that_bring_back_at_once_pass_each_batch_once, *boost::unit_test::timeout(60)) {
  constexpr std::size_t threads = 3, most = 5;
  constexpr std::uint64_t batches = 200'000;
  lent_batches lent(most);
  std::vector<std::atomic<int>> passes(batches);
  std::vector<std::atomic<std::uint64_t>> taken(threads);  // 1 + the batch that a thread is to bring back
  std::atomic<bool> ended{false};
  std::vector<std::jthread> users;
  for (std::size_t t = 0; t < threads; ++t)
    users.emplace_back([&, t] {
      for (;;) {
        const std::uint64_t number = taken[t].exchange(0);
        if (number > 0)
          lent.bring_back(number - 1, [&](std::uint64_t one) { ++passes[one]; });
        else if (ended)
          return;
        else
          std::this_thread::yield();
      }
    });
  std::mt19937 draw(1);
  while (lent.lent() < batches) {
    const std::size_t user = draw() % threads;
    if (lent.has_room() && taken[user] == 0) taken[user] = lent.lend() + 1;
  }
  while (lent.in_order() < batches) std::this_thread::yield();  // none is overlooked
  ended = true;
  users.clear();
  BOOST_TEST(lent.out() == 0u);
  std::uint64_t wrong = 0;
  for (const auto& count : passes) wrong += count == 1 ? 0 : 1;
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
