#include "open_reader.hpp"
#include "source_files.hpp"
#include "virtual_reader.hpp"

#include <fmt/format.h>

#include <optional>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 8;  // virtual datasets may be made of virtual ones

/// Opens the sources of one virtual dataset; those of one file follow each other, mostly.
class source_opener {
 public:
  source_opener(read_world& world, const source_file& file, const dataset_description& d, std::size_t depth)
      : world_(world), owner_(file), description_(d), depth_(depth) {}

  /// Null where the source is absent. Throws failure where libhdf5 must read it.
  std::unique_ptr<dataset_reader> open(virtual_mapping& m, dataset_info& info) {
    const auto from = m.file == "." ? std::optional(owner_) : file_of(m.file);
    if (!from || H5Lexists(from->id, m.dataset.c_str(), H5P_DEFAULT) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      info.missing_sources.push_back(m.file + ":" + m.dataset);
      return nullptr;
    }
    const open_dataset dataset(from->id, m.dataset);
    const auto d = std::make_shared<const dataset_description>(describe_dataset(dataset));
    if (d->null || d->value.labels || H5Tequal(d->value.memory.native(), description_.value.memory.native()) <= 0 ||
        !d->value.conversion.empty())
      throw failure("a source has another type: libhdf5 converts it");
    if (!m.resolve(d->info.shape)) throw failure("a source has another shape than its mapping");
    auto source_info = d->info;
    auto reader = open_reader(world_, *from, dataset, d, source_info, depth_ + 1);
    info.missing_sources.insert(info.missing_sources.end(), source_info.missing_sources.begin(),
                                source_info.missing_sources.end());
    if (source_info.access == access::locked) throw failure("a source is read through libhdf5: " + source_info.reason);
    return reader;
  }

 private:
  std::optional<source_file> file_of(const std::string& name) {
    if (name != name_) {
      const auto path = find_source(name, world_.files[owner_.number].path);
      if (!path) return std::nullopt;
      const auto identity = probe(*path);
      file_ = open_hdf5(*path);
      number_ = world_.add_file(*path, identity);
      name_ = name;
    }
    return source_file{number_, number_, file_.native()};
  }

  read_world& world_;
  source_file owner_;
  const dataset_description& description_;
  std::size_t depth_;
  std::string name_;
  file_id file_;
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<dataset_reader> open_virtual(read_world& world, const source_file& file, const open_dataset& dataset,
                                             const shared_description& d, dataset_info& info, std::string& why,
                                             std::size_t depth) {
  const library_guard guard;
  if (depth >= deepest || !dataset.member.empty()) {
    why = "virtual: libhdf5 finds its sources";
    return nullptr;
  }
  const property_id creation(checked(H5Dget_create_plist(dataset.id.native()), "its properties cannot be read"));
  auto mappings = read_virtual_mappings(creation.native());
  if (!mappings) {
    why = "virtual, and its mappings are not fixed boxes: libhdf5 finds its sources";
    return nullptr;
  }
  source_opener sources(world, file, *d, depth);
  std::vector<virtual_reader::part> parts;
  for (auto& m : *mappings) {
    auto reader = sources.open(m, info);
    parts.push_back({std::move(m), std::move(reader)});
  }
  auto reader = std::make_unique<virtual_reader>(*d, std::move(parts));
  if (begins_like_library(*reader, dataset.id.native(), *d)) return reader;
  why = "virtual, and its sources give other bytes than libhdf5";
  return nullptr;
}

}  // namespace penstock::io
