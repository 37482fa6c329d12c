#include "source_check.hpp"

#include "ask_for_memory.hpp"
#include "describe.hpp"
#include "projection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 32;                            // virtual datasets that are made of virtual ones
constexpr std::uint64_t most_chunks = std::uint64_t{1} << 17;  // that may be meant, and need not be: two seconds, about

bool shows(const selection& target, const box& wanted) {
  for (std::size_t n = 0; n < target.parts(); ++n)
    if (!target.within(n, wanted).empty()) return true;
  return false;
}

mapped_selection target_of(hid_t creation, std::size_t n) {
  const space_id space(checked(H5Pget_virtual_vspace(creation, n), "a mapping cannot be read"));
  return mapped_selection(space.native());
}

mapped_selection source_of(hid_t creation, std::size_t n) {
  const space_id space(checked(H5Pget_virtual_srcspace(creation, n), "a mapping cannot be read"));
  return mapped_selection(space.native());
}

/// So many blocks that they are not gone through one by one.
bool is_scattered(const selection& s) {
  for (std::size_t n = 0; n < s.parts(); ++n)
    for (const auto& axis : s.axes(n))
      if (axis.count / axis.block > most_chunks) return true;
  return false;
}

}  // namespace

struct source_check::source {
  dataset_id id;
  dataset_description description;
  std::unique_ptr<chunk_check> chunks;    // null where it has none
  std::unique_ptr<source_check> sources;  // null where it is not virtual
  extents shape{}, unit{};                // of what is looked at together: a chunk, or a value
};

struct source_check::shared {
  /// What is shown, grown to whole chunks.
  struct shown_chunks {
    std::vector<std::tuple<const source*, extents, extents>> all{};  // start and count
    bool exact = true;                                               // no more than that, and with filters
    bool operator==(const shown_chunks&) const = default;
  };

  check_memory& memory;
  fault_seam faults;
  shown_chunks* noted = nullptr;  // instead of a look at them
  bool guesses = false;           // looks at all that may be meant
  std::uint64_t guessed = 0;      // chunks of that, by the mapping at the top
  std::map<std::pair<std::string, std::string>, std::unique_ptr<source>> known{};  // by file and dataset
};

source_check::source_check(hid_t dataset, check_memory& memory, fault_seam faults)
    : made_(std::make_unique<shared>(shared{memory, std::move(faults)})),
      all_(*made_),
      owner_(file_name_of(dataset)),
      files_(owner_, all_.faults) {
  read_mappings(dataset);
}

source_check::source_check(hid_t dataset, shared& all)
    : all_(all), owner_(file_name_of(dataset)), files_(owner_, all_.faults) {
  read_mappings(dataset);
}

source_check::~source_check() = default;

std::size_t source_check::mapping_bytes(hid_t creation) {
  std::size_t bytes = 0;
  for (std::size_t n = 0, count = count_mappings(creation); n < count; ++n)
    bytes += sizeof(mapping) - 2 * sizeof(mapped_selection) + target_of(creation, n).bytes() +
             source_of(creation, n).bytes();
  return bytes;
}

void source_check::read_mappings(hid_t dataset) {
  const library_guard guard;
  own_.reset(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  const space_id space(checked(H5Dget_space(dataset), "its shape cannot be read"));
  std::array<hsize_t, max_rank> shape{};
  const int rank =
      checked(H5Sget_simple_extent_dims(space.native(), shape.data(), nullptr), "its shape cannot be read");
  shape_.assign(shape.begin(), shape.begin() + rank);
  const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
  ask_for_memory(all_.faults, memory_items::mappings, mapping_bytes(creation.native()));
  auto written = written_sources(creation.native());
  mappings_.reserve(written.size());
  for (std::size_t n = 0; n < written.size(); ++n) {
    auto target = target_of(creation.native(), n);
    const auto bounds = target.bounds(shape_.size());
    mappings_.push_back({std::move(written[n]), std::move(target), source_of(creation.native(), n), bounds});
  }
}

void source_check::look(const box& part) {
  if (part.rank == 0 || part.empty()) return;
  for (auto& m : mappings_) {
    if (intersection(m.bounds, part).empty()) continue;  // the guard is dear where there are thousands
    const library_guard guard;
    all_.guesses = false;
    all_.guessed = 0;
    look(m, part, 0);
  }
}

void source_check::look(mapping& m, const box& wanted, std::size_t depth) {
  if (depth > deepest) throw failure("it is virtual, and its sources are virtual themselves without an end");
  if (intersection(m.bounds, wanted).empty()) return;
  if (m.written.is_numbered() && m.target.has_blocks(shape_.size())) return look_numbered(m, wanted, depth);
  std::optional<selection> made;
  const auto* target = m.target.of(shape_, index_blocks::endless, made);
  if (target != nullptr && !shows(*target, wanted)) return;
  auto* const s = find(m, 0);
  if (s == nullptr) return;
  if (!s->chunks && !s->sources) {
    if (all_.noted != nullptr) all_.noted->exact = false;
    return;
  }
  auto along = index_blocks::endless;
  if (m.target.is_endless() && m.from.is_endless()) {  // both end where the first of them does
    along = std::min(m.target.along(shape_), m.from.along(s->description.info.shape));
    target = m.target.of(shape_, along, made);
  }
  look_in(*s, target, m.from, along, wanted, depth);
}

bool source_check::rows_show_same_chunks(const box& part, std::size_t row_axis) {
  const library_guard guard;
  const auto shown_by = [&](const box& some) {
    shared::shown_chunks shown;
    all_.noted = &shown;
    try {
      look(some);
    } catch (...) {
      all_.noted = nullptr;
      throw;
    }
    all_.noted = nullptr;
    std::ranges::sort(shown.all);
    shown.all.erase(std::unique(shown.all.begin(), shown.all.end()), shown.all.end());
    return shown;
  };
  const auto all = shown_by(part);
  if (!all.exact) return false;
  auto row = part;
  row.count[row_axis] = 1;
  for (; row.start[row_axis] < part.start[row_axis] + part.count[row_axis]; ++row.start[row_axis])
    if (shown_by(row) != all) return false;
  return true;
}

/// Block n of the target shows source n.
void source_check::look_numbered(mapping& m, const box& wanted, std::size_t depth) {
  const auto [first, count] = m.target.blocks_near(wanted);
  for (auto n = first; n < first + count; ++n) {
    const auto block = m.target.block(n);
    if (block && !shows(*block, wanted)) continue;
    auto* const s = find(m, n);
    if (s == nullptr) return;
    if (s->chunks || s->sources)
      look_in(*s, block ? &*block : nullptr, m.from, index_blocks::endless, wanted, depth);
    else if (all_.noted != nullptr)
      all_.noted->exact = false;
  }
}

/// Where libhdf5 finds that something does not fit it says so itself. Until then all that may be meant is looked at.
void source_check::look_in(source& s, const selection* target, const mapped_selection& from, std::uint64_t along,
                           const box& wanted, std::size_t depth) {
  const auto& shape = s.description.info.shape;
  std::optional<selection> made;
  const auto* const shown = from.of(shape, along, made);
  const auto values = target != nullptr ? target->size() : std::nullopt;
  const auto there = shown != nullptr ? shown->size() : std::nullopt;
  box seen;  // of chunks: many parts lie in the same ones
  const auto look = [&](const lattice& part) { look_at(s, part, seen, depth); };
  // All of a source is what it has now: libhdf5 takes as many values of it, in C order, as the mapping had once.
  const bool fits = values && values == there;
  if (fits || (values && there && from.is_all())) {
    if (project(*target, wanted, *shown, look)) return;
  }
  if (all_.noted != nullptr) {
    all_.noted->exact = false;
    return;
  }
  const bool before = std::exchange(all_.guesses, true);
  const auto all = selection::all(shape);
  if (fits && s.chunks && !is_scattered(*shown)) {
    for (std::size_t n = 0; n < shown->parts(); ++n) look(shown->whole(n));
  } else {
    look(all.whole(0));
  }
  all_.guesses = before;
}

/// What a guess looks at is refused before it takes long.
void source_check::count_guessed(const source& s, const box& chunks) {
  std::uint64_t all = 1;
  for (std::size_t k = 0; k < chunks.rank; ++k)
    if (__builtin_mul_overflow(all, (chunks.count[k] - 1) / s.unit[k] + 1, &all)) all = most_chunks + 1;
  all_.guessed += std::min(all, most_chunks + 1);
  if (all_.guessed > most_chunks)
    throw failure(fmt::format(
        "which values of its source {} are shown cannot be found out in time, and more than {} chunks would "
        "have to be looked at; show it by boxes or regular steps, or copy it with larger chunks",
        s.description.object, most_chunks));
}

void source_check::look_at(source& s, const lattice& part, box& seen, std::size_t depth) {
  visit_boxes(part, s.unit, s.shape, [&](const box& each) {
    if (s.sources) {
      for (auto& m : s.sources->mappings_) s.sources->look(m, each, depth + 1);
      return;
    }
    if (each.start == seen.start && each.count == seen.count) return;
    seen = each;
    if (all_.guesses && s.chunks) count_guessed(s, each);
    if (all_.noted != nullptr) {
      if (s.description.info.filters.empty()) all_.noted->exact = false;
      if (all_.noted->exact) all_.noted->all.emplace_back(&s, each.start, each.count);
      return;
    }
    try {
      s.chunks->look(s.id.native(), each, 0);
    } catch (failure& e) {
      e.rows.reset();
      e.lost = {};
      throw;
    }
  });
}

/// Null where the source is absent: libhdf5 gives fill values then. It looks for none of those that are numbered behind
/// one that is.
source_check::source* source_check::find(mapping& m, std::uint64_t number) {
  if (const auto known = m.sources.find(number); known != m.sources.end()) return known->second;
  for (; m.there < number; ++m.there)
    if (!is_there(m.written.at(m.there))) return nullptr;
  auto* const found = open(m.written.at(number));
  if (found != nullptr) m.sources.emplace(number, found);
  return found;
}

bool source_check::is_there(const source_name& name) {
  const auto from = name.file == "." ? source_finder::source{owner_, {}, own_.native()} : files_.find(name.file);
  return from && is_dataset(from->file, name.dataset);
}

source_check::source* source_check::open(const source_name& name) {
  const auto from =
      name.file == "." ? std::optional(source_finder::source{owner_, {}, own_.native()}) : files_.find(name.file);
  if (!from || !is_dataset(from->file, name.dataset)) return nullptr;
  std::pair key{from->path.native(), name.dataset};
  if (const auto known = all_.known.find(key); known != all_.known.end()) return known->second.get();
  auto made = std::make_unique<source>();
  open_dataset dataset(from->file, name.dataset);
  made->description = describe_dataset(dataset);
  made->id = std::move(dataset.id);
  const auto& d = made->description;
  std::copy(d.info.shape.begin(), d.info.shape.end(), made->shape.begin());
  made->unit.fill(1);
  if (d.rank > 0 && d.info.layout == layout::chunked) {
    std::copy(d.info.chunk_shape.begin(), d.info.chunk_shape.end(), made->unit.begin());
    made->chunks = std::make_unique<chunk_check>(d, all_.memory);
  } else if (d.rank > 0 && d.info.layout == layout::virtual_dataset) {
    made->sources.reset(new source_check(made->id.native(), all_));
  }
  return all_.known.emplace(std::move(key), std::move(made)).first->second.get();
}

}  // namespace penstock::io
