#include "files_behind.hpp"

#include "describe.hpp"
#include "external_bytes.hpp"
#include "read_driver.hpp"
#include "source_files.hpp"
#include "virtual_mapping.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 32;  // virtual datasets that are made of virtual ones

class survey {
 public:
  explicit survey(const fault_seam& faults) : faults_(faults) {}

  /// False where there is no such dataset that opens.
  bool visit(hid_t file, const std::string& path, const std::string& name, std::size_t depth) {
    if (!done_.insert({path, name}).second) return true;
    if (depth > deepest) {
      too_deep = true;
      return false;
    }
    try {
      const open_dataset opened(file, name);
      const hid_t dataset = opened.id.native();
      const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
      const auto owner = file_name_of(dataset);  // a link may have led to another
      if (const int files = H5Pget_external_count(creation.native()); files > 0)
        for (const auto& each : external_files(creation.native(), static_cast<std::size_t>(files), owner))
          raw.insert(each.native());
      else if (H5Pget_layout(creation.native()) == H5D_VIRTUAL)
        visit_sources(dataset, creation.native(), owner, depth);
      else
        owners.insert(owner.native());
      return true;
    } catch (const failure& e) {
      if (!is_absence(e.system)) throw;
      return false;
    }
  }

  std::set<std::string> raw;     ///< external files
  std::set<std::string> owners;  ///< of datasets that are stored in their own file
  bool too_deep = false;         ///< there may be more, which was not looked for

 private:
  void visit_sources(hid_t dataset, hid_t creation, const std::filesystem::path& owner, std::size_t depth) {
    const file_id own(checked(H5Iget_file_id(dataset), "its file cannot be found"));
    source_finder files(owner, faults_);
    for (const auto& written : written_sources(creation)) {
      std::uint64_t number = 0;
      while (visit_source(written.at(number), files, {owner, {}, own.native()}, depth) && written.is_numbered())
        ++number;
    }
  }

  bool visit_source(const source_name& name, source_finder& files, const source_finder::source& own,
                    std::size_t depth) {
    try {
      const auto found = name.file == "." ? own : files.find(name.file);
      return found && visit(found->file, found->path.native(), name.dataset, depth + 1);
    } catch (const failure& e) {  // it is none that is read: the others may be
      if (!is_absence(e.system)) throw;
      return false;
    }
  }

  fault_seam faults_;
  std::set<std::pair<std::string, std::string>> done_;
};

}  // namespace

dataset_files files_behind(hid_t file, const std::filesystem::path& path, const std::string& name,
                           const fault_seam& faults) {
  const library_guard guard;
  noted_files opened;
  survey all(faults);
  all.visit(file, path.native(), name, 0);
  H5Eclear2(H5E_DEFAULT);
  if (all.too_deep)
    throw failure(
        fmt::format("it is virtual, and its sources are virtual themselves more than {} deep: not all files "
                    "behind it can be found; show what it shows by fewer virtual datasets",
                    deepest));
  std::set<std::string> values = std::move(all.owners), names = std::move(opened.names);
  names.insert(all.raw.begin(), all.raw.end());
  values.merge(all.raw);
  names.insert(path.native());
  return {{names.begin(), names.end()}, {values.begin(), values.end()}};
}

}  // namespace penstock::io
