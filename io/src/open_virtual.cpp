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
      : world_(world),
        // A link may have led to the virtual dataset; its own file's names start in that file.
        owner_{file.number, file.number, file.id},
        description_(d),
        depth_(depth),
        files_(world.files[file.number].path, world.faults) {}

  /// Null where the source is absent. Throws failure where libhdf5 must read the virtual dataset.
  std::unique_ptr<dataset_reader> open(virtual_mapping& m, dataset_info& info) {
    const auto from = m.file == "." ? std::optional(owner_) : file_called(m.file);
    if (!from || !is_dataset(from->id, m.dataset)) {
      info.missing_sources.push_back(m.file + ":" + m.dataset);
      return nullptr;
    }
    const open_dataset dataset(from->id, m.dataset);
    const auto d = std::make_shared<const dataset_description>(describe_dataset(dataset));
    if (file_id other; d->external_files > 0)
      check_external_files(world_, file_of(world_, dataset, *from, other), dataset, d->external_files);
    if (d->null || d->value.labels || H5Tequal(d->value.memory.native(), description_.value.memory.native()) <= 0 ||
        !d->value.conversion.empty())
      throw failure("a source has another type: libhdf5 converts it");
    if (!m.resolve(d->info.shape)) throw failure("a source has another shape than its mapping");
    file_id linked;
    const auto file = file_of(world_, dataset, *from, linked);
    auto source_info = d->info;
    auto reader = open_reader(world_, file, dataset, d, source_info, depth_ + 1);
    info.missing_sources.insert(info.missing_sources.end(), source_info.missing_sources.begin(),
                                source_info.missing_sources.end());
    count(source_info);
    return reader;
  }

  std::size_t opened() const noexcept { return opened_; }
  std::size_t locked() const noexcept { return locked_; }
  /// Why the first of those that libhdf5 reads is.
  const std::string& why_locked() const noexcept { return why_locked_; }

 private:
  void count(const dataset_info& source) {
    ++opened_;
    if (source.access != access::locked) return;
    // It may be made of this one: only libhdf5 is left, and whoever asks it looks for circles first.
    if (source.layout == layout::virtual_dataset) throw failure("a source is read through libhdf5: " + source.reason);
    if (locked_++ == 0) why_locked_ = source.reason;
  }

  std::optional<source_file> file_called(const std::string& name) {
    const auto found = files_.find(name);
    if (!found) return std::nullopt;
    const auto number = world_.add_file(found->path, found->identity);
    return source_file{number, number, found->file};
  }

  read_world& world_;
  source_file owner_;
  const dataset_description& description_;
  std::size_t depth_;
  source_finder files_;
  std::size_t opened_ = 0, locked_ = 0;
  std::string why_locked_;
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
  if (sources.locked() > 0 && sources.locked() == sources.opened()) {
    why = "virtual, and its sources are read through libhdf5: " + sources.why_locked();
    return nullptr;
  }
  auto reader = std::make_unique<virtual_reader>(*d, std::move(parts));
  if (sources.locked() > 0)
    info.reason +=
        fmt::format(", {} of {} of them through libhdf5: {}", sources.locked(), sources.opened(), sources.why_locked());
  if (begins_like_library(*reader, dataset.id.native(), *d)) return reader;
  why = "virtual, and its sources give other bytes than libhdf5";
  return nullptr;
}

}  // namespace penstock::io
