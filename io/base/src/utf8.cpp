#include <penstock/utf8.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace penstock {
namespace {

/// Bytes of the character that `text` starts with; 0 where it is no UTF-8.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t n) { return n < text.size() ? static_cast<unsigned char>(text[n]) : 0u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // Not the longer forms of shorter characters, surrogates, or what lies past the last one.
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (first < 0xc2 || first > 0xf4 || second < least || second > most) return 0;
  for (std::size_t n = 2; n < bytes; ++n)
    if ((byte(n) & 0xc0) != 0x80) return 0;
  return bytes;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t bytes = character_bytes(rest);
    if (bytes > 0)
      result += rest.substr(0, bytes);
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest.front()));
    rest.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace penstock
