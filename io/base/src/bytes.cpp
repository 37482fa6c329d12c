#include <penstock/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace penstock {
namespace {

struct unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<unit, 11> units{{{"", 1},
                                      {"b", 1},
                                      {"kb", 1e3},
                                      {"mb", 1e6},
                                      {"gb", 1e9},
                                      {"tb", 1e12},
                                      {"kib", 1024.},
                                      {"mib", 1048576.},
                                      {"gib", 1073741824.},
                                      {"tib", 1099511627776.},
                                      {"bytes", 1}}};

[[noreturn]] void refuse(std::string_view text) {
  throw std::invalid_argument(
      fmt::format("'{}' is not a number of bytes; write for example 512MiB, 1.5GiB, 64KB or 4096", text));
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const char* first = std::find_if_not(text.begin(), text.end(), is_space);
  double number = 0;
  const auto [rest, status] = std::from_chars(first, text.data() + text.size(), number);
  if (status != std::errc{} || !(number >= 0)) refuse(text);

  std::string suffix;
  for (const char* c = rest; c != text.data() + text.size(); ++c)
    if (!is_space(*c)) suffix += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  const auto* found = std::find_if(units.begin(), units.end(), [&](const unit& u) { return u.name == suffix; });
  if (found == units.end()) refuse(text);
  const double bytes = std::round(number * found->bytes);
  if (bytes >= static_cast<double>(std::numeric_limits<std::size_t>::max())) refuse(text);
  return static_cast<std::size_t>(bytes);
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::array<const char*, 6> names{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t n = 0;
  while (value >= 999.5 && n + 1 < names.size()) value /= 1024, ++n;
  if (n == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, names[n]);
}

}  // namespace penstock
