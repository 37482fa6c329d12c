#include <penstock/io/dataset_info.hpp>

#include <array>

namespace penstock::io {

std::string_view name_of(layout l) noexcept {
  constexpr std::array<std::string_view, 4> names{"compact", "contiguous", "chunked", "virtual"};
  return names[static_cast<std::size_t>(l)];
}

std::string_view name_of(access a) noexcept {
  constexpr std::array<std::string_view, 3> names{"direct", "staged", "locked"};
  return names[static_cast<std::size_t>(a)];
}

}  // namespace penstock::io
