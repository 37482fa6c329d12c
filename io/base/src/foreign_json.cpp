#include <penstock/foreign_json.hpp>

#include <fmt/format.h>

namespace penstock {

bool is_bounded_json(std::string_view text) noexcept {
  if (text.size() > largest_foreign_json) return false;
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    if (in_text && c == '\\') {
      ++n;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (in_text) {
      continue;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_foreign_json) return false;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;  // what closes nothing is for the parser to tell
    }
  }
  return true;
}

std::string in_short(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", text.substr(0, end), text.size());
}

}  // namespace penstock
