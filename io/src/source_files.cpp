#include "source_files.hpp"

#include "library_prefixes.hpp"
#include "open_hdf5.hpp"
#include "virtual_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 32;  // virtual datasets that are made of virtual ones

std::vector<std::filesystem::path> candidates(const std::filesystem::path& written,
                                              const std::filesystem::path& owner) {
  std::vector<std::filesystem::path> all;
  if (written.is_absolute()) all.push_back(written);
  const auto name = written.is_absolute() ? written.filename() : written;
  for (const auto& folder : source_prefixes(owner)) all.push_back(folder / name);
  all.push_back(owner.parent_path() / name);
  all.push_back(name);
  std::error_code none;
  if (const auto target = std::filesystem::canonical(owner, none); !none) all.push_back(target.parent_path() / name);
  return all;
}

/// Closed where it does not open.
file_id open_if_possible(const std::filesystem::path& path, file_identity& identity) {
  try {
    identity = probe(path);
    return open_hdf5(path);
  } catch (const failure& e) {
    if (e.system == EMFILE || e.system == ENFILE || e.system == ENOMEM) throw;
    return {};
  }
}

class survey {
 public:
  std::vector<std::string> absent;

  void visit(hid_t dataset, std::size_t depth) {
    if (depth > deepest)
      throw failure(
          fmt::format("it is virtual, and its sources lead back to it, or are virtual themselves more than {} "
                      "deep: there may be no end to reading them",
                      deepest));
    const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
    if (H5Pget_layout(creation.native()) != H5D_VIRTUAL) return;
    const auto owner = file_name_of(dataset);
    const file_id own(checked(H5Iget_file_id(dataset), "its file cannot be found"));
    source_finder files(owner);
    for (const auto& name : fixed_sources(creation.native())) {
      const auto found = name.file == "." ? source_finder::source{owner, {}, own.native()} : files.find(name.file);
      if (!found || !is_dataset(found->file, name.dataset)) {
        absent.push_back(name.file + ":" + name.dataset);
        continue;
      }
      if (done_.contains({found->path.native(), name.dataset})) continue;
      const dataset_id source(
          checked(H5Dopen2(found->file, name.dataset.c_str(), H5P_DEFAULT), "a source cannot be opened"));
      visit(source.native(), depth + 1);
      done_.insert({found->path.native(), name.dataset});
    }
  }

 private:
  std::set<std::pair<std::string, std::string>> done_;
};

}  // namespace

std::filesystem::path file_name_of(hid_t object) {
  const library_guard guard;
  std::string name(4096, '\0');
  const auto length = checked(H5Fget_name(object, name.data(), name.size()), "its file has no name");
  name.resize(std::min(static_cast<std::size_t>(length), name.size() - 1));
  return name;
}

std::optional<source_finder::source> source_finder::find(const std::string& written) {
  if (written == last_) return found_;
  const library_guard guard;
  last_ = written;
  found_.reset();
  for (const auto& path : candidates(written, owner_)) {
    file_identity identity;
    if (file_id file = open_if_possible(path, identity)) {
      file_ = std::move(file);
      found_ = source{path, identity, file_.native()};
      break;
    }
  }
  H5Eclear2(H5E_DEFAULT);
  return found_;
}

std::vector<std::string> absent_sources(hid_t dataset) {
  const library_guard guard;
  survey all;
  all.visit(dataset, 0);
  return std::move(all.absent);
}

bool is_dataset(hid_t file, const std::string& name) {
  const library_guard guard;
  const dataset_id dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  H5Eclear2(H5E_DEFAULT);
  return static_cast<bool>(dataset);
}

}  // namespace penstock::io
