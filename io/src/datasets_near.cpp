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

/// The few names most like `path`; all of them where there are few.
std::vector<std::string> near_matches(std::vector<std::string> names, std::string_view path) {
  constexpr std::size_t most = 5, compared = 10000;
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
  return nearest;
}

}  // namespace

std::string datasets_near(hid_t file, std::string_view path) {
  std::vector<std::string> names;
  walk_datasets(
      file, [&](const std::string& found) { names.push_back(found); }, [](const auto&, const auto&) {});
  const auto near = near_matches(std::move(names), path);
  return near.empty() ? "; the file holds no dataset" : fmt::format("; there are {}", fmt::join(near, ", "));
}

}  // namespace penstock::io
