#include "datasets_near.hpp"

#include "walk.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace penstock::io {
namespace {

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

/// The few names most like `path`, joined; "among others" where there are more.
std::string near_matches(std::vector<std::string> names, std::string_view path) {
  constexpr std::size_t most = 5, compared = 10000;
  const char* const others = names.size() > most ? ", among others" : "";
  if (names.size() > compared) names.resize(compared);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (auto& name : names) {
    const auto d = distance(name, path);
    ranked.emplace_back(d, std::move(name));
  }
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > most) ranked.resize(most);
  std::vector<std::string> nearest;
  for (auto& r : ranked) nearest.push_back(std::move(r.second));
  return fmt::format("{}{}", fmt::join(nearest, ", "), others);
}

std::vector<std::string> datasets_below(hid_t file, const std::string& top) {
  std::vector<std::string> names;
  walk_datasets(
      file, top, [&](const std::string& found) { names.push_back(found); }, [](const auto&, const auto&) {});
  return names;
}

/// None, too, where `path` is no group, or where only soft links lie in it.
std::vector<std::string> datasets_of_group(hid_t file, std::string path) {
  const library_guard guard;
  const object_id object(H5Oopen(file, path.c_str(), H5P_DEFAULT));
  if (!object || H5Iget_type(object.native()) != H5I_GROUP) return {};
  while (path.ends_with('/')) path.pop_back();
  return datasets_below(file, path);
}

}  // namespace

std::string datasets_near(hid_t file, std::string_view path) {
  const auto inside = datasets_of_group(file, std::string(path));
  if (!inside.empty())
    return fmt::format("; in it {} {}", inside.size() == 1 ? "is" : "are", near_matches(inside, path));
  const auto near = datasets_below(file, "");
  return near.empty() ? "; the file holds no dataset" : fmt::format("; there are {}", near_matches(near, path));
}

}  // namespace penstock::io
