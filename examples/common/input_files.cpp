#include "input_files.hpp"

#include <penstock/io/file.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

namespace examples {
namespace {

namespace fs = std::filesystem;

/// Each file is opened once, and those that many datasets lead to are named once.
std::vector<fs::path> files_behind(const std::vector<penstock::io::location>& datasets) {
  std::map<fs::path, std::set<std::string>> by_file;
  for (const auto& part : datasets) by_file[part.file].insert(part.dataset);
  std::set<fs::path> all;
  for (const auto& [file, names] : by_file) {
    const penstock::io::file opened(file);
    for (const std::string& name : names)
      for (fs::path& each : opened.files_behind(name)) all.insert(std::move(each));
  }
  return {all.begin(), all.end()};
}

}  // namespace

bool input_files::include(const fs::path& file) const {
  std::error_code none;
  if (!fs::exists(file, none)) return false;
  const auto is_it = [&](const fs::path& input) { return fs::equivalent(file, input, none); };
  if (std::ranges::any_of(files_, is_it)) return true;
  if (std::ranges::any_of(datasets_, [&](const auto& part) { return is_it(part.file); })) return true;
  if (!behind_) behind_ = files_behind(datasets_);
  return std::ranges::any_of(*behind_, is_it);
}

}  // namespace examples
