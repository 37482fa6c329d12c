#pragma once

#include <penstock/fault.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

/// Signals that interrupt one call of a site several times over, or a system that moves few bytes at a time; and what
/// the seam was asked of that site.
class interruptions final : public fault_injector {
 public:
  struct asked {
    std::string what{};
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    bool operator==(const asked&) const = default;
  };

  /// The `nth` use of the site ends with EINTR, and so does each that follows it until it was `times` of them.
  interruptions(fault_site site, std::size_t nth, std::size_t times) : site_(site), nth_(nth), times_(times) {}
  /// No use moves more bytes.
  interruptions(fault_site site, std::size_t at_most) : site_(site), at_most_(at_most) {}

  fault before(fault_site site, std::string_view what, std::uint64_t offset, std::size_t bytes) override {
    if (site != site_) return {};
    const std::lock_guard lock(mutex_);
    const std::size_t use = all_.size();
    all_.push_back({std::string(what), offset, bytes});
    if (use >= nth_ && use < nth_ + times_) return {.error = EINTR};
    return {.at_most = at_most_};
  }
  const std::vector<asked>& all() const { return all_; }

 private:
  fault_site site_;
  std::size_t nth_ = 0, times_ = 0, at_most_ = std::numeric_limits<std::size_t>::max();
  std::mutex mutex_;
  std::vector<asked> all_;
};

/// `work` gives what it was for, however often a call of the site is interrupted: one that is `times` times is made
/// `times` + 1 times, each time for the same. Tried at each call.
inline void check_that_interrupted_calls_are_made_again(const std::string& stage, fault_site site,
                                                        const std::function<bool(fault_seam)>& work) {
  constexpr std::size_t times = 3;
  const auto calm = std::make_shared<interruptions>(site, 0, 0);
  BOOST_TEST_CONTEXT(stage) {
    BOOST_TEST_REQUIRE(work(calm));
    const auto& calls = calm->all();
    BOOST_TEST_REQUIRE(calls.size() > 0u);
    for (std::size_t n = 0; n < calls.size(); ++n) {
      const auto faults = std::make_shared<interruptions>(site, n, times);
      BOOST_TEST(work(faults), "call " << n);
      auto expected = calls;
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(n), times, calls[n]);
      BOOST_TEST((faults->all() == expected), "call " << n << " of " << calls.size() << ": " << faults->all().size()
                                                      << " where it is interrupted " << times << " times");
    }
  }
}

/// `work` gives what it was for where no call moves more than `most` bytes: each goes on where the one before ended.
inline void check_that_short_calls_are_gone_on_with(const std::string& stage, fault_site site, std::size_t most,
                                                    const std::function<bool(fault_seam)>& work) {
  const auto calm = std::make_shared<interruptions>(site, 0, 0), faults = std::make_shared<interruptions>(site, most);
  BOOST_TEST_CONTEXT(stage) {
    BOOST_TEST_REQUIRE(work(calm));
    BOOST_TEST(work(faults));
    std::vector<interruptions::asked> expected;
    for (auto call : calm->all())
      for (;;) {
        expected.push_back(call);
        if (call.bytes <= most) break;
        call.offset += most;
        call.bytes -= most;
      }
    BOOST_TEST(expected.size() > calm->all().size());
    BOOST_TEST((faults->all() == expected), faults->all().size() << " calls where " << expected.size() << " are due");
  }
}

}  // namespace penstock::test
