#include <penstock/handle.hpp>

#include <boost/test/unit_test.hpp>

#include <type_traits>
#include <vector>

namespace {

std::vector<int> released;  // in the order of release; each case starts with none

struct numbered {
  using native_type = int;
  static native_type empty() noexcept { return -1; }
  static void release(native_type native) noexcept { released.push_back(native); }
};
using handle = penstock::handle<numbered>;

struct fresh {
  fresh() { released.clear(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(handles, fresh)

BOOST_AUTO_TEST_CASE(a_handle_is_released_once_at_its_end) {
  {
    const handle h(3);
    BOOST_TEST(static_cast<bool>(h));
    BOOST_TEST(h.native() == 3);
    BOOST_TEST(released.empty());
  }
  BOOST_TEST(released == std::vector<int>{3}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_empty_handle_releases_nothing) {
  { const handle h; }
  BOOST_TEST(released.empty());
}

BOOST_AUTO_TEST_CASE(moving_leaves_the_source_empty) {
  handle a(1);
  handle b(std::move(a));
  BOOST_TEST(!a);
  BOOST_TEST(b.native() == 1);
  BOOST_TEST(released.empty());
}

BOOST_AUTO_TEST_CASE(move_assignment_releases_what_was_held) {
  handle a(1), b(2);
  a = std::move(b);
  BOOST_TEST(released == std::vector<int>{1}, boost::test_tools::per_element());
  BOOST_TEST(a.native() == 2);
  BOOST_TEST(!b);
}

BOOST_AUTO_TEST_CASE(self_move_keeps_the_handle) {
  handle a(1);
  handle& same = a;
  a = std::move(same);
  BOOST_TEST(a.native() == 1);
  BOOST_TEST(released.empty());
}

BOOST_AUTO_TEST_CASE(release_gives_the_handle_up) {
  int native = -1;
  {
    handle a(5);
    native = a.release();
    BOOST_TEST(!a);
  }
  BOOST_TEST(native == 5);
  BOOST_TEST(released.empty());
}

BOOST_AUTO_TEST_CASE(reset_releases_and_takes_the_next) {
  handle a(1);
  a.reset(2);
  BOOST_TEST(released == std::vector<int>{1}, boost::test_tools::per_element());
  a.reset();
  BOOST_TEST(released == (std::vector<int>{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(!a);
}

BOOST_AUTO_TEST_CASE(a_handle_cannot_be_copied) {
  static_assert(!std::is_copy_constructible_v<handle> && !std::is_copy_assignable_v<handle>);
  static_assert(std::is_nothrow_move_constructible_v<handle> && std::is_nothrow_move_assignable_v<handle>);
}

BOOST_AUTO_TEST_SUITE_END()
