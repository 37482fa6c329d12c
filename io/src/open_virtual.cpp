#include "ask_for_memory.hpp"
#include "object_key.hpp"
#include "open_reader.hpp"
#include "source_files.hpp"
#include "virtual_reader.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 8;  // virtual datasets may be made of virtual ones

/// A dataset that mappings lead to. `through`: its path leads through that file.
struct source_key {
  std::size_t file = 0, through = 0;
  object_key object{};
  std::string member;

  auto operator<=>(const source_key&) const = default;
};

struct source {
  shared_description description;
  std::shared_ptr<const dataset_reader> reader;
  access how = access::locked;
  std::string reason;
};

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
  std::shared_ptr<const dataset_reader> open(virtual_mapping& m, dataset_info& info) {
    const auto from = m.file == "." ? std::optional(owner_) : file_called(m.file);
    if (!from || !is_dataset(from->id, m.dataset)) {
      info.missing_sources.push_back(m.file + ":" + m.dataset);
      return nullptr;
    }
    const open_dataset dataset(from->id, m.dataset);
    file_id linked;
    const auto file = file_of(world_, dataset, *from, linked);
    const auto& source = opened_source(file, dataset, info);
    if (!is_shown(*source.description)) throw failure("a source has another type: libhdf5 converts it");
    if (!m.resolve(source.description->info.shape)) throw failure("a source has another shape than its mapping");
    count(source);
    return source.reader;
  }

  std::size_t opened() const noexcept { return opened_; }
  std::size_t locked() const noexcept { return locked_; }
  /// Why the first of those that libhdf5 reads is.
  const std::string& why_locked() const noexcept { return why_locked_; }

 private:
  /// Whether its values are shown as they are.
  bool is_shown(const dataset_description& d) const {
    return !d.null && !d.value.labels && d.value.conversion.empty() &&
           H5Tequal(d.value.memory.native(), description_.value.memory.native()) > 0;
  }

  /// Many mappings may show parts of one dataset, by many names: it is described and opened once for all of them.
  const source& opened_source(const source_file& file, const open_dataset& dataset, dataset_info& info) {
    source_key key{file.number, file.through, {}, dataset.member};
    unsigned links = 0;
    if (!identify(dataset.id.native(), key.object, links))
      throw failure("a source cannot be told from others", 0, library_messages());
    if (const auto known = sources_.find(key); known != sources_.end()) return known->second;
    const auto d = std::make_shared<const dataset_description>(describe_dataset(dataset));
    if (d->external_files > 0) check_external_files(world_, file, dataset, d->external_files);
    source s{d, nullptr, d->info.access, d->info.reason};
    if (!d->external_shortage.empty() && world_.short_source.empty())
      world_.short_source = shortage_of_source(dataset, *d);
    if (is_shown(*d)) {
      auto source_info = d->info;
      s.reader = open_reader(world_, file, dataset, d, source_info, depth_ + 1);
      s.how = source_info.access;
      s.reason = source_info.reason;
      info.missing_sources.insert(info.missing_sources.end(), source_info.missing_sources.begin(),
                                  source_info.missing_sources.end());
    }
    return sources_.emplace(std::move(key), std::move(s)).first->second;
  }

  void count(const source& s) {
    ++opened_;
    if (s.how != access::locked) return;
    // It may be made of this one: only libhdf5 is left, and whoever asks it looks for circles first.
    if (s.description->info.layout == layout::virtual_dataset)
      throw failure("a source is read through libhdf5: " + s.reason);
    if (locked_++ == 0) why_locked_ = s.reason;
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
  std::map<source_key, source> sources_;
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
  ask_for_memory(world.faults, memory_items::mappings,
                 count_mappings(creation.native()) * sizeof(virtual_reader::part));
  auto mappings = read_virtual_mappings(creation.native());
  if (!mappings) {
    why = "virtual, and its mappings are not fixed boxes: libhdf5 finds its sources";
    return nullptr;
  }
  source_opener sources(world, file, *d, depth);
  std::vector<virtual_reader::part> parts;
  parts.reserve(mappings->size());
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
