#include <penstock/io/file.hpp>

#include "describe.hpp"
#include "open_hdf5.hpp"
#include "source_files.hpp"
#include "walk.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <system_error>

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

std::string absolute(std::string_view path) {
  return path.starts_with('/') ? std::string(path) : "/" + std::string(path);
}

dataset_info damaged_dataset(const std::string& path, const std::string& sentence) {
  dataset_info info;
  info.path = path;
  info.type_text = "damaged";
  info.unreadable = info.reason = sentence;
  return info;
}

}  // namespace

struct file::impl {
  std::filesystem::path path;
  file_id id;

  error_context context() const { return {.file = path.string(), .dataset = {}, .rows = {}, .hdf5 = {}, .system = 0}; }

  dataset_info describe(const std::string& dataset) const {
    const library_guard guard;
    const open_dataset opened(id.native(), dataset);
    auto info = describe_dataset(opened).info;
    if (info.layout == layout::virtual_dataset) try {
        info.missing_sources = absent_sources(opened.id.native());
      } catch (const failure& e) {
        info.unreadable = e.what();
      }
    return info;
  }
};

file::file(const std::filesystem::path& path, fault_seam faults) : impl_(std::make_unique<impl>()) {
  impl_->path = path;
  with_context(impl_->context(), [&] {
    if (faults)
      if (const fault f = faults->before(fault_site::open_file, path.native(), 0, 0); f.error != 0)
        throw failure(fmt::format("it cannot be opened: {}", std::generic_category().message(f.error)), f.error);
    probe(path);
    impl_->id = open_hdf5(path, faults);
  });
}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

const std::filesystem::path& file::path() const noexcept { return impl_->path; }

std::vector<dataset_info> file::datasets() const {
  std::vector<dataset_info> all;
  const auto add = [&](const std::string& path) {
    try {
      all.push_back(impl_->describe(path));
    } catch (const failure& e) {
      all.push_back(damaged_dataset(path, e.what()));
    }
  };
  const auto damaged = [&](const std::string& path, const std::string& sentence) {
    all.push_back(damaged_dataset(path, sentence));
  };
  with_context(impl_->context(), [&] { walk_datasets(impl_->id.native(), add, damaged); });
  return all;
}

dataset_info file::describe(std::string_view path) const {
  const auto name = absolute(path);
  try {
    return impl_->describe(name);
  } catch (const failure& e) {
    std::vector<std::string> names;
    walk_datasets(
        impl_->id.native(), [&](const std::string& found) { names.push_back(found); }, [](const auto&, const auto&) {});
    const auto near = near_matches(std::move(names), name);
    const auto hint = near.empty() ? std::string("; the file holds no dataset")
                                   : fmt::format("; there are {}", fmt::join(near, ", "));
    throw error(e.what() + hint,
                {.file = impl_->path.string(), .dataset = name, .rows = {}, .hdf5 = e.hdf5, .system = e.system});
  }
}

bool file::contains(std::string_view path) const {
  const library_guard guard;
  const object_id object(H5Oopen(impl_->id.native(), absolute(path).c_str(), H5P_DEFAULT));
  const bool found = object && H5Iget_type(object.native()) == H5I_DATASET;
  H5Eclear2(H5E_DEFAULT);
  return found;
}

}  // namespace penstock::io
