#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

/// JSON from a file may be anything: parsers that keep values as trees copy, compare and print them recursively, and a
/// tree of a hundred thousand levels overflows the stack. These bounds are far above what Penstock writes.
inline constexpr std::size_t deepest_foreign_json = 32;
inline constexpr std::size_t largest_foreign_json = std::size_t{16} << 20;  ///< bytes

/// Whether the text has at most deepest_foreign_json levels of arrays and objects, and largest_foreign_json bytes.
/// Pure; does not say that it is JSON.
bool is_bounded_json(std::string_view text) noexcept;

/// Parses JSON that comes from a file. The value is discarded (`is_discarded()`) where the text is no JSON or not
/// bounded. `Json`: nlohmann::json, which no public header of Penstock includes.
template <class Json>
Json parse_foreign_json(std::string_view text) {
  return is_bounded_json(text) ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

/// A foreign text in a message: whole up to `most` bytes, else its beginning, cut between two characters of UTF-8, and
/// how many bytes it has.
std::string in_short(std::string_view text, std::size_t most = 400);

/// The same of a value that parse_foreign_json() gave, as JSON. Throws what `Json::dump` throws.
template <class Json>
std::string json_in_short(const Json& value, std::size_t most = 400) {
  return in_short(value.dump(), most);
}

}  // namespace penstock
