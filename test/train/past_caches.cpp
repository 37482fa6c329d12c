#include "host/past_caches.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace penstock::train;

BOOST_AUTO_TEST_SUITE(past_caches)

BOOST_AUTO_TEST_CASE(bytes_arrive_wherever_they_begin_and_end_and_no_others_change) {
  std::vector<std::uint8_t> source(200);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i + 1);
  for (std::size_t from = 0; from < 17; ++from)
    for (std::size_t to = 0; to < 17; ++to)
      for (const std::size_t bytes : {0, 1, 4, 15, 16, 17, 40, 64, 160}) {
        std::vector<std::uint8_t> target(200, 0), expected = target;
        for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = source[from + i];
        host::copy_past_caches(source.data() + from, target.data() + to, bytes);
        host::settle_past_caches();
        BOOST_REQUIRE(target == expected);
      }
}

BOOST_AUTO_TEST_SUITE_END()
