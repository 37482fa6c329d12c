#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::io {

/// One dataset of one file.
struct location {
  std::filesystem::path file;
  std::string dataset;  ///< path inside the file, as "/train/images"
};

/// The dataset named `dataset` in every file that `pattern` matches (shell wildcards * ? [] in the last components; a
/// plain path is itself), sorted by name as a person counts ("part2" before "part10"). `dataset` may hold wildcards
/// too: then the matching datasets of each file follow in the same order. Throws io::error where nothing matches.
std::vector<location> datasets(std::string_view pattern, std::string_view dataset);

}  // namespace penstock::io
