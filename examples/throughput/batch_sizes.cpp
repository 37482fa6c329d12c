#include "batch_sizes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace examples {
namespace {

std::size_t parse_size(std::string_view text) {
  std::size_t size = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  constexpr std::size_t most = std::size_t{1} << 32;
  if (failure != std::errc{} || end != text.data() + text.size() || size == 0 || size > most)
    throw std::invalid_argument(
        fmt::format("--batch-rows: \"{}\" is no number of rows; write 256,1024 or 32:16384", text));
  return size;
}

}  // namespace

std::vector<std::size_t> parse_batch_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  while (true) {
    const auto comma = text.find(',');
    const auto item = text.substr(0, comma);
    const auto colon = item.find(':');
    const std::size_t last = parse_size(item.substr(colon == item.npos ? 0 : colon + 1));
    const std::size_t first = parse_size(item.substr(0, colon));
    if (first > last)
      throw std::invalid_argument(
          fmt::format("--batch-rows: the range {} is empty; the smaller number comes first", item));
    std::size_t size = first;
    for (; size < last; size *= 2) sizes.push_back(size);
    if (size != last)
      throw std::invalid_argument(
          fmt::format("--batch-rows: {} doubled again and again does not come to {}: end the range {} at {} or {}",
                      first, last, item, size / 2, size));
    sizes.push_back(last);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return sizes;
}

}  // namespace examples
