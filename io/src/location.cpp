#include "natural_order.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/location.hpp>

#include <fmt/format.h>

#include <fnmatch.h>
#include <glob.h>
#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace penstock::io {
namespace {

bool has_wildcards(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

/// A folder that glob() could not list. It calls a function without an argument for its caller, on the caller's thread.
struct unlisted {
  std::string folder;
  int why = 0;
};
thread_local unlisted last_unlisted;

int keep_unlisted(const char* folder, int why) noexcept {
  last_unlisted.why = why;
  try {
    last_unlisted.folder = folder;
  } catch (const std::bad_alloc&) {  // not through C
    last_unlisted.why = ENOMEM;
  }
  return 1;  // an end of it
}

[[noreturn]] void refuse(const std::string& pattern, const unlisted& last) {
  error_context where;
  where.system = last.why;
  if (last.why == ENOENT)
    throw error(fmt::format("there is no folder '{}'; check the pattern '{}'", last.folder, pattern), where);
  throw error(fmt::format("the folder '{}' of '{}' cannot be listed: {}", last.folder, pattern,
                          std::generic_category().message(last.why)),
              where);
}

std::vector<std::string> matching_files(const std::string& pattern) {
  std::error_code none;
  // A name may hold the characters of a pattern: a file that is there is meant as it is written.
  if (!has_wildcards(pattern) || std::filesystem::exists(pattern, none)) return {pattern};
  glob_t found{};
  last_unlisted = {.folder = {}, .why = ENOMEM};  // what glob() says without that function
  const int status = ::glob(pattern.c_str(), 0, &keep_unlisted, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status == GLOB_NOMATCH || (status == 0 && paths.empty()))
    throw error(fmt::format("no file matches '{}'; check the pattern and the folder", pattern));
  if (status != 0) refuse(pattern, last_unlisted);
  std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}

/// A dataset of exactly this name, or a member of a compound. Throws error where there is the compound, and no such
/// member.
bool is_there(const file& source, const std::string& path) {
  if (source.contains(path)) return true;
  const auto bracket = path.ends_with(']') ? path.rfind('[') : std::string::npos;
  if (bracket == std::string::npos || bracket == 0 || !source.contains(path.substr(0, bracket))) return false;
  try {
    source.describe(path);
    return true;
  } catch (const error&) {
    if (source.describe(path.substr(0, bracket)).type_text.starts_with("compound")) throw;
    return false;  // a pattern
  }
}

std::vector<std::string> matching_datasets(const std::string& path, const std::string& pattern) {
  if (!has_wildcards(pattern)) return {pattern};
  const file source(path);
  if (is_there(source, pattern)) return {pattern};
  std::vector<std::string> names;
  for (const auto& info : source.datasets())
    if (::fnmatch(pattern.c_str(), info.path.c_str(), FNM_PATHNAME | FNM_NOESCAPE) == 0) names.push_back(info.path);
  if (names.empty())
    throw error(fmt::format("no dataset matches '{}'; penstock-inspect lists what the file holds", pattern),
                {.file = path, .dataset = {}, .rows = {}, .hdf5 = {}, .system = 0});
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

}  // namespace

std::vector<location> datasets(std::string_view pattern, std::string_view dataset) {
  std::vector<location> found;
  std::string name(dataset);
  if (!name.starts_with('/')) name = "/" + name;
  for (const auto& path : matching_files(std::string(pattern)))
    for (auto& match : matching_datasets(path, name)) found.push_back({path, std::move(match)});
  return found;
}

}  // namespace penstock::io
