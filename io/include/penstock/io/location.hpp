#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::io {

/// Indices [first, first + count) of one axis of a dataset.
struct axis_range {
  std::size_t axis = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// One dataset of one file, or a part of it.
struct location {
  std::filesystem::path file{};
  std::string dataset{};     ///< path inside the file, as "/train/images"; a member of a compound as "/table[column]"
  std::size_t row_axis = 0;  ///< the axis that counts rows; the others follow in their order
  std::vector<axis_range> region{};  ///< parts of other axes; those that are not named are whole
};

/// The dataset named `dataset` in every file that `pattern` matches (shell wildcards * ? [], which a
/// backslash makes plain; the path of a file that is there is itself), sorted by name as a person counts ("part2"
/// before "part10"). `dataset` may hold wildcards too: then the matching datasets of each file follow in the same
/// order. Throws io::error where nothing matches.
std::vector<location> datasets(std::string_view pattern, std::string_view dataset);

}  // namespace penstock::io
