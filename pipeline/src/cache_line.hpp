#pragma once

#include <cstddef>

namespace penstock::pipeline {

/// Bytes of memory that one processor takes out of another's cache when it writes to any of them. (The standard
/// library's constant may differ between the parts of one build.)
inline constexpr std::size_t cache_line = 64;

}  // namespace penstock::pipeline
