#include "chosen_algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace penstock::train::cuda {
namespace {

/// Takes a number and the character that follows it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value, 16);
  if (code != std::errc() || rest == end || (*rest != ' ' && *rest != '\n')) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return value;
}

}  // namespace

std::string to_text(const std::vector<chosen_algorithm>& chosen) {
  std::string text;
  for (const chosen_algorithm& each : chosen) {
    for (const std::uint64_t value : each.product) text += fmt::format("{:x} ", value);
    for (const std::uint64_t value : each.algorithm) text += fmt::format("{:x} ", value);
    text.back() = '\n';
  }
  return text;
}

std::optional<std::vector<chosen_algorithm>> parse_algorithms(std::string_view text) {
  std::vector<chosen_algorithm> chosen;
  while (!text.empty()) {
    std::array<std::uint64_t, chosen_algorithm::keys + chosen_algorithm::words> values{};
    for (std::uint64_t& value : values) {
      const auto number = take_number(text);
      if (!number) return std::nullopt;
      value = *number;
    }
    chosen_algorithm& each = chosen.emplace_back();
    std::copy_n(values.begin(), chosen_algorithm::keys, each.product.begin());
    std::copy_n(values.begin() + chosen_algorithm::keys, chosen_algorithm::words, each.algorithm.begin());
  }
  return chosen;
}

left_algorithms& left_algorithms::operator+=(const left_algorithms& other) noexcept {
  all += other.all;
  refused += other.refused;
  too_large += other.too_large;
  needed_bytes = std::max(needed_bytes, other.needed_bytes);
  return *this;
}

std::string why_left(const left_algorithms& left, std::size_t workspace_bytes) {
  if (left.refused + left.too_large == 0) return {};
  std::string text =
      fmt::format("{} of {} algorithms of products are chosen afresh: ", left.refused + left.too_large, left.all);
  if (left.too_large > 0)
    text += fmt::format("{} need a workspace of up to {} bytes, and there are {}", left.too_large, left.needed_bytes,
                        workspace_bytes);
  if (left.too_large > 0 && left.refused > 0) text += ", and ";
  if (left.refused > 0) text += fmt::format("{} are for other products", left.refused);
  return text;
}

}  // namespace penstock::train::cuda
