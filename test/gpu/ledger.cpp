#include <penstock/gpu/ledger.hpp>

#include <boost/test/unit_test.hpp>

#include <stdexcept>

using namespace penstock;
using gpu::memory_kind;

BOOST_AUTO_TEST_SUITE(ledger)

BOOST_AUTO_TEST_CASE(items_keep_their_order_and_are_rounded_up_to_the_alignment) {
  gpu::ledger items;
  items.add(memory_kind::device, "ring of x", 1000, "10 rows of 100 B");
  items.add(memory_kind::pinned, "slots", 512);
  items.add(memory_kind::device, "ring of y", 1);
  items.add(memory_kind::device, "nothing", 0);
  BOOST_TEST(items.items().size() == 4U);
  BOOST_TEST(items.items()[0].name == "ring of x");
  BOOST_TEST(items.items()[2].name == "ring of y");
  BOOST_TEST(items.total(memory_kind::device) == 1024U + 512U);
  BOOST_TEST(items.total(memory_kind::pinned) == 512U);
  BOOST_TEST(items.total(memory_kind::host) == 0U);
}

BOOST_AUTO_TEST_CASE(a_name_serves_once_in_a_kind) {
  gpu::ledger items;
  items.add(memory_kind::device, "weights", 8);
  items.add(memory_kind::host, "weights", 8);
  BOOST_CHECK_THROW(items.add(memory_kind::device, "weights", 8), std::invalid_argument);
  BOOST_TEST(items.items().size() == 2U);
}

BOOST_AUTO_TEST_CASE(ledgers_join_wholly_or_not_at_all) {
  gpu::ledger first, second;
  first.add(memory_kind::device, "a", 512);
  second.add(memory_kind::device, "b", 512);
  first.add(second);
  BOOST_TEST(first.total(memory_kind::device) == 1024U);

  gpu::ledger third;
  third.add(memory_kind::device, "c", 512);
  third.add(memory_kind::device, "b", 512);
  BOOST_CHECK_THROW(first.add(third), std::invalid_argument);
  BOOST_TEST(first.items().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_budget_is_kept_to_the_byte) {
  gpu::ledger items;
  items.add(memory_kind::device, "a", 1024);
  items.add(memory_kind::host, "b", 512);
  BOOST_TEST(items.fits({.device_bytes = 1024, .pinned_bytes = 0, .host_bytes = 512}));
  BOOST_TEST(!items.fits({.device_bytes = 1023, .pinned_bytes = 0, .host_bytes = 512}));
  BOOST_TEST(!items.fits({.device_bytes = 1024, .pinned_bytes = 0, .host_bytes = 511}));
}

BOOST_AUTO_TEST_CASE(a_budget_is_reached_by_kind) {
  gpu::budget limits;
  for (const memory_kind kind : gpu::memory_kinds) limits.of(kind) = 7;
  BOOST_TEST(limits.device_bytes == 7U);
  BOOST_TEST(limits.pinned_bytes == 7U);
  BOOST_TEST(limits.host_bytes == 7U);
}

BOOST_AUTO_TEST_CASE(the_table_shows_each_item_and_what_is_too_much) {
  gpu::ledger items;
  items.add(memory_kind::device, "ring of image", 3_MiB, "1024 rows of 3.00 KiB");
  items.add(memory_kind::device, "pool", 2_MiB);
  items.add(memory_kind::pinned, "slots", 1_MiB, "4 of 256 KiB");
  const std::string text = to_text(items, {.device_bytes = 4_MiB, .pinned_bytes = 2_MiB, .host_bytes = 0});
  BOOST_TEST(text ==
             "memory  item               bytes  detail\n"
             "device  ring of image   3.00 MiB  1024 rows of 3.00 KiB\n"
             "device  pool            2.00 MiB\n"
             "device  total           5.00 MiB  of 4.00 MiB: 1.00 MiB too much\n"
             "pinned  slots           1.00 MiB  4 of 256 KiB\n"
             "pinned  total           1.00 MiB  of 2.00 MiB\n"
             "host    total                0 B  of 0 B\n");
}

BOOST_AUTO_TEST_CASE(a_budget_error_tells_the_ledger_and_a_budget_that_would_do) {
  gpu::ledger items;
  items.add(memory_kind::device, "ring of x", 20_MiB);
  const gpu::budget limits{.device_bytes = 16_MiB, .pinned_bytes = 1_MiB, .host_bytes = 0};
  // 1 byte above a multiple: what is printed must not be rounded below what is needed.
  const gpu::budget smallest{.device_bytes = 20_MiB + 1, .pinned_bytes = 64_KiB + 1, .host_bytes = 100};
  const gpu::budget_error e("the pipeline does not fit its budget", items, limits, smallest);
  const std::string what = e.what();
  BOOST_TEST(what.starts_with("the pipeline does not fit its budget\n"));
  BOOST_TEST(what.find("ring of x") != std::string::npos);
  BOOST_TEST(what.ends_with("The smallest budget that would do: device 21MiB, pinned 65KiB, host 100B."));
  BOOST_TEST(parse_bytes("21MiB") >= smallest.device_bytes);
  BOOST_TEST(parse_bytes("65KiB") >= smallest.pinned_bytes);
  BOOST_TEST(parse_bytes("100B") >= smallest.host_bytes);
  BOOST_TEST(e.smallest().device_bytes == 20_MiB + 1);
  BOOST_TEST(e.limits().device_bytes == 16_MiB);
  BOOST_TEST(e.items().items().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
