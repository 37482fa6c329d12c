#include <penstock/gpu/slot_pool.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using penstock::gpu::slot_pool;

BOOST_AUTO_TEST_SUITE(slot_pools)

BOOST_AUTO_TEST_CASE(each_slot_is_given_out_once) {
  slot_pool pool(3);
  BOOST_TEST(*pool.try_acquire() == 0U);
  BOOST_TEST(*pool.acquire() == 1U);
  BOOST_TEST(*pool.try_acquire() == 2U);
  BOOST_TEST(!pool.try_acquire().has_value());
  BOOST_TEST(pool.in_use() == 3U);
  BOOST_TEST(pool.size() == 3U);
}

BOOST_AUTO_TEST_CASE(the_longest_free_slot_comes_first) {
  slot_pool pool(3);
  for (int n = 0; n < 3; ++n) pool.acquire();
  pool.release(2);
  pool.release(0);
  BOOST_TEST(*pool.acquire() == 2U);
  BOOST_TEST(*pool.acquire() == 0U);
}

BOOST_AUTO_TEST_CASE(the_peak_stays) {
  slot_pool pool(4);
  const auto a = *pool.acquire(), b = *pool.acquire();
  pool.release(a);
  pool.release(b);
  pool.acquire();
  BOOST_TEST(pool.peak() == 2U);
  BOOST_TEST(pool.in_use() == 1U);
}

BOOST_AUTO_TEST_CASE(a_slot_that_is_not_in_use_cannot_be_released) {
  slot_pool pool(2);
  BOOST_CHECK_THROW(pool.release(0), std::invalid_argument);
  BOOST_CHECK_THROW(pool.release(2), std::invalid_argument);
  BOOST_CHECK_THROW(slot_pool(0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(who_waits_gets_the_slot_that_is_released) {
  slot_pool pool(1);
  const auto slot = *pool.acquire();
  std::optional<std::size_t> got;
  std::jthread waiter([&](std::stop_token) { got = pool.acquire(); });
  pool.release(slot);
  waiter.join();
  BOOST_TEST(got.value() == 0U);
  BOOST_TEST(pool.waited_seconds() >= 0);
}

BOOST_AUTO_TEST_CASE(those_who_wait_are_served_in_the_order_of_their_coming) {
  slot_pool pool(1);
  pool.acquire();
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> waiters;
  for (int n = 0; n < 4; ++n) {
    waiters.emplace_back([&, n] {
      const auto slot = *pool.acquire();
      {
        const std::scoped_lock lock(mutex);
        order.push_back(n);
      }
      pool.release(slot);
    });
    while (pool.waiting() != static_cast<std::size_t>(n) + 1) std::this_thread::yield();
  }
  BOOST_TEST(!pool.try_acquire().has_value());
  pool.release(0);
  waiters.clear();
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(pool.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait_without_a_slot) {
  slot_pool pool(1);
  pool.acquire();
  std::stop_source stop;
  std::optional<std::size_t> got = 7;
  std::jthread waiter([&] { got = pool.acquire(stop.get_token()); });
  stop.request_stop();
  waiter.join();
  BOOST_TEST(!got.has_value());
  BOOST_TEST(pool.in_use() == 1U);
  pool.release(0);
  BOOST_TEST(pool.try_acquire().has_value());  // nobody waits any more
}

BOOST_AUTO_TEST_CASE(a_stop_that_came_first_gives_no_slot) {
  slot_pool pool(1);
  std::stop_source stop;
  stop.request_stop();
  BOOST_TEST(!pool.acquire(stop.get_token()).has_value());
  BOOST_TEST(pool.in_use() == 0U);
}

// Under contention no slot is ever with two owners, and every request is served.
BOOST_AUTO_TEST_CASE(many_threads_share_few_slots) {
  constexpr int threads = 8, rounds = 2000;
  slot_pool pool(3);
  std::vector<std::atomic<int>> owners(3);
  std::atomic<int> served = 0, doubled = 0;
  {
    std::vector<std::jthread> workers;
    for (int n = 0; n < threads; ++n)
      workers.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          const auto slot = *pool.acquire();
          if (owners[slot].fetch_add(1) != 0) ++doubled;
          ++served;
          owners[slot].fetch_sub(1);
          pool.release(slot);
        }
      });
  }
  BOOST_TEST(served.load() == threads * rounds);
  BOOST_TEST(doubled.load() == 0);
  BOOST_TEST(pool.in_use() == 0U);
  BOOST_TEST(pool.peak() <= 3U);
}

BOOST_AUTO_TEST_SUITE_END()
