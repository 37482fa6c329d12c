#include "source_files.hpp"

#include "chunk_check.hpp"
#include "describe.hpp"
#include "external_bytes.hpp"
#include "library_prefixes.hpp"
#include "open_hdf5.hpp"
#include "read_driver.hpp"
#include "source_check.hpp"
#include "virtual_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

/// What is neither a file nor a folder is not opened: a named pipe may be waited for, and is no source that is missing.
void refuse_special_file(const std::filesystem::path& path) {
  std::error_code missing;
  const auto status = std::filesystem::status(path, missing);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status))
    throw unreadable(
        fmt::format("the file {} of one of its sources is no regular file, which could be read at any "
                    "position",
                    path.string()));
}

/// Closed where there is none.
file_id open_if_possible(const std::filesystem::path& path, file_identity& identity, const fault_seam& faults) {
  try {
    identity = probe(path, faults, faults);
    return open_hdf5(path, faults);
  } catch (const failure& e) {
    if (!is_absence(e.system))
      throw failure(fmt::format("the file {} of one of its sources: {}", path.string(), e.what()), e.system, e.hdf5);
    return {};
  }
}

class survey {
 public:
  explicit survey(const fault_seam& faults) : faults_(faults) {}

  source_survey found;

  void visit(hid_t dataset, std::size_t depth) {
    if (depth > deepest)
      throw failure(
          fmt::format("it is virtual, and its sources lead back to it, or are virtual themselves more than {} "
                      "deep: there may be no end to reading them",
                      deepest));
    const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
    const auto owner = file_name_of(dataset);
    if (const int files = H5Pget_external_count(creation.native()); files > 0)
      refuse_special_files(creation.native(), static_cast<std::size_t>(files), owner);
    if (H5Pget_layout(creation.native()) != H5D_VIRTUAL) return;
    found.mapping_bytes += source_check::mapping_bytes(creation.native());
    const file_id own(checked(H5Iget_file_id(dataset), "its file cannot be found"));
    source_finder files(owner, faults_);
    for (const auto& written : written_sources(creation.native())) {
      if (written.is_numbered()) {
        for (std::uint64_t number = 0; visit_source(written.at(number), files, {owner, {}, own.native()}, depth);)
          ++number;
      } else if (const auto name = written.at(0); !visit_source(name, files, {owner, {}, own.native()}, depth)) {
        found.absent.push_back(name.file + ":" + name.dataset);
      }
    }
  }

 private:
  /// False where there is no such source.
  bool visit_source(const source_name& name, source_finder& files, const source_finder::source& own,
                    std::size_t depth) {
    const auto from = name.file == "." ? own : files.find(name.file);
    if (!from || !is_dataset(from->file, name.dataset)) return false;
    const std::pair key{from->path.native(), name.dataset};
    if (done_.contains(key)) return true;
    const open_dataset source(from->file, name.dataset);
    measure(source);
    visit(source.id.native(), depth + 1);
    done_.insert(key);
    return true;
  }

  void measure(const open_dataset& source) try {
    const file_id file(checked(H5Iget_file_id(source.id.native()), "its file cannot be found"));
    hsize_t bytes = 0;
    checked(H5Fget_filesize(file.native(), &bytes), "the size of its file cannot be read");
    const auto d = describe_dataset(source);
    found.check_bytes = std::max(found.check_bytes, chunk_check::half_bytes(d, bytes));
    if (!d.external_shortage.empty() && found.short_source.empty()) found.short_source = shortage_of_source(source, d);
  } catch (const failure& e) {  // it is damaged: reading tells
    if (!is_absence(e.system)) throw;
  }

  fault_seam faults_;
  std::set<std::pair<std::string, std::string>> done_;
};

/// Looks at the sources of a virtual dataset, those that are virtual themselves once for each of their axes.
class chunk_survey {
 public:
  explicit chunk_survey(const fault_seam& faults) : faults_(faults) {}

  std::uint64_t rows_of(hid_t dataset, std::size_t row_axis, std::size_t depth) {
    const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
    auto mappings = read_virtual_mappings(creation.native());
    if (!mappings || depth > deepest) return 0;
    const auto owner = file_name_of(dataset);
    const file_id own(checked(H5Iget_file_id(dataset), "its file cannot be found"));
    source_finder files(owner, faults_);
    std::uint64_t rows = 0;
    for (auto& m : *mappings) {
      const auto found = m.file == "." ? source_finder::source{owner, {}, own.native()} : files.find(m.file);
      if (found) rows = std::max(rows, shown_rows(m, *found, row_axis, depth));
    }
    return rows;
  }

 private:
  std::uint64_t shown_rows(virtual_mapping& m, const source_finder::source& from, std::size_t row_axis,
                           std::size_t depth) {
    dataset_description d;
    dataset_id dataset;
    try {
      open_dataset source(from.file, m.dataset);
      d = describe_dataset(source);
      dataset = std::move(source.id);
    } catch (const failure& e) {  // it is absent, or damaged: reading tells
      if (!is_absence(e.system)) throw;
      return 0;
    }
    if (d.null || !m.resolve(d.info.shape)) return 0;
    const auto axis = m.source_axis_of(row_axis);
    if (d.info.layout != layout::virtual_dataset) return m.shown_rows(decoded_rows(d, axis), row_axis);
    const auto [known, is_new] = known_.try_emplace({from.path.native(), m.dataset, axis}, 0);
    if (is_new) known->second = rows_of(dataset.native(), axis, depth + 1);
    return m.shown_rows(known->second, row_axis);
  }

  fault_seam faults_;
  std::map<std::tuple<std::string, std::string, std::size_t>, std::uint64_t> known_;
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
    refuse_special_file(path);
    file_identity identity;
    if (file_id file = open_if_possible(path, identity, faults_)) {
      file_ = std::move(file);
      found_ = source{path, identity, file_.native()};
      break;
    }
  }
  H5Eclear2(H5E_DEFAULT);
  return found_;
}

source_survey survey_sources(hid_t dataset, const fault_seam& faults) {
  const library_guard guard;
  survey all(faults);
  all.visit(dataset, 0);
  return std::move(all.found);
}

std::uint64_t decoded_rows_of_sources(hid_t dataset, std::size_t row_axis, const fault_seam& faults) {
  const library_guard guard;
  return chunk_survey(faults).rows_of(dataset, row_axis, 0);
}

bool is_dataset(hid_t file, const std::string& name) {
  const library_guard guard;
  take_driver_error();
  const dataset_id dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  const auto messages = library_messages();
  if (const int system = dataset ? 0 : take_driver_error(); !is_absence(system))
    throw failure(why_unread(system, messages), system, messages);
  return static_cast<bool>(dataset);
}

}  // namespace penstock::io
