#pragma once

#include <string_view>

namespace penstock::io {

/// Whether `a` comes before `b` as a person counts: runs of digits compare as numbers, so "part2" is before "part10".
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace penstock::io
