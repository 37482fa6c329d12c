#include "natural_order.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Cuts the run of digits off the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto* end = std::find_if_not(text.begin(), text.end(), is_digit);
  std::string_view digits(text.begin(), static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) noexcept {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto x = take_number(a), y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "a1" and "a01" are different names: some order that is always the same
}

}  // namespace penstock::io
