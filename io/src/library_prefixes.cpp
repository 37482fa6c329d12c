#include "library_prefixes.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace penstock::io {
namespace {

constexpr const char* source_variable = "HDF5_VDS_PREFIX";
constexpr const char* external_variable = "HDF5_EXTFILE_PREFIX";

std::string_view value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : std::string_view();
}

/// A folder as libhdf5 takes it when it starts: it may begin in that of the dataset's file.
std::filesystem::path folder_of(std::string_view value, const std::filesystem::path& owner) {
  constexpr std::string_view origin = "${ORIGIN}";
  if (!value.starts_with(origin)) return value;
  return owner.parent_path().native() + "/" + std::string(value.substr(origin.size()));
}

}  // namespace

std::string why_sources_are_elsewhere() {
  if (value_of(source_variable).empty()) return {};
  return fmt::format("virtual, and {} is set: libhdf5 finds its sources", source_variable);
}

std::string why_external_files_are_elsewhere() {
  // libhdf5 looks at this one only when it starts. "." is where it looks anyway, but nobody sets it for that.
  if (value_of(external_variable).empty()) return {};
  return fmt::format("in external files, and {} is set: libhdf5 finds them", external_variable);
}

std::vector<std::filesystem::path> external_folders(const std::filesystem::path& owner) {
  std::vector<std::filesystem::path> all{""};
  if (const auto value = value_of(external_variable); !value.empty()) all.push_back(folder_of(value, owner));
  return all;
}

std::vector<std::filesystem::path> source_prefixes(const std::filesystem::path& owner) {
  std::vector<std::filesystem::path> all;
  const auto value = value_of(source_variable);
  for (auto rest = value; !rest.empty();) {  // as libhdf5 takes it when it opens a source: folders between colons
    const auto colon = rest.find(':');
    if (colon != 0) all.emplace_back(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  if (value.empty() || value == ".") return all;
  // And as it takes it when it starts.
  all.push_back(folder_of(value, owner));
  return all;
}

}  // namespace penstock::io
