#include <penstock/type.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace penstock {

type parse_type(std::string_view name) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(type::float64); ++i) {
    const auto t = static_cast<type>(i);
    if (name_of(t) == name) return t;
    names += (i ? ", " : "") + std::string(name_of(t));
  }
  throw std::invalid_argument(fmt::format("'{}' is no element type; there are {}", name, names));
}

}  // namespace penstock
