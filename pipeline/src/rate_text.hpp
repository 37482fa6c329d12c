#pragma once

#include <fmt/format.h>

#include <string>

namespace penstock::pipeline {

/// "46.25 GB/s", and "3.1 MB/s" of what would be next to nothing. Pure.
inline std::string rate_text(double bytes_per_second) {
  constexpr double small = 1e7;
  return bytes_per_second > 0 && bytes_per_second < small ? fmt::format("{:.2g} MB/s", bytes_per_second / 1e6)
                                                          : fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
}

}  // namespace penstock::pipeline
