#include <penstock/io/row_reader.hpp>

#include "chunk_index.hpp"
#include "label_reader.hpp"
#include "open_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>

namespace penstock::io {
namespace {

struct open_segment {
  std::unique_ptr<dataset_reader> reader;
  padding text_padding = padding::none;
  std::size_t row_axis = 0;
  box part;  // of the dataset: what all rows give
};

/// What all segments of a field share.
struct row_format {
  element_type element;
  std::vector<std::uint64_t> shape;
  std::size_t value_bytes = 0, bytes = 0;
  bool labels = false;

  std::string text() const {
    return fmt::format("[{}] {}{}", fmt::join(shape, ", "), name_of(element.element),
                       element.swapped ? ", byte-swapped" : "");
  }
  bool same_as(const row_format& other) const {
    return labels == other.labels && element.element == other.element.element &&
           element.swapped == other.element.swapped && shape == other.shape;
  }
};

/// The part of the dataset that a location names. Throws failure where it does not lie inside.
box part_of(const dataset_description& d, const location& where) {
  box part;
  part.rank = d.rank;
  std::copy(d.info.shape.begin(), d.info.shape.end(), part.count.begin());
  if (where.row_axis >= std::max<std::size_t>(d.rank, 1))
    throw failure(fmt::format("axis {} cannot count its rows: it has {} axes", where.row_axis, d.rank));
  for (const auto& r : where.region) {
    if (r.axis >= d.rank || r.axis == where.row_axis)
      throw failure(fmt::format("axis {} cannot be cut: it has {} axes, and axis {} counts its rows", r.axis, d.rank,
                                where.row_axis));
    const auto extent = d.info.shape[r.axis];
    if (r.count == 0 || r.first > extent || r.count > extent - r.first)
      throw failure(fmt::format("indices {} + {} of axis {} do not lie inside its extent of {}", r.first, r.count,
                                r.axis, extent));
    part.start[r.axis] = r.first;
    part.count[r.axis] = r.count;
  }
  return part;
}

row_format format_of(const dataset_description& d, const box& part, std::size_t row_axis) {
  row_format f;
  f.element = *d.value.element;
  f.labels = d.value.labels;
  for (std::size_t k = 0; k < part.rank; ++k)
    if (k != row_axis) f.shape.push_back(part.count[k]);
  f.value_bytes = d.value.bytes;
  f.bytes = f.value_bytes;
  for (const auto extent : f.shape)
    if (__builtin_mul_overflow(f.bytes, extent, &f.bytes))
      throw failure("a row holds more bytes than can be addressed");
  f.shape.insert(f.shape.end(), d.value.shape.begin(), d.value.shape.end());
  return f;
}

}  // namespace

struct row_reader::impl {
  impl(std::vector<location> where, const read_options& options) : world(options) {
    if (where.empty()) throw std::invalid_argument("a row_reader needs one dataset or more; the list is empty");
    open_files = std::max<std::size_t>(options.open_files, 1);
    allow_missing_sources = options.allow_missing_sources;
    for (auto& l : where) {
      const auto context = place(l, {});
      with_context(context, [&] { add(std::move(l)); });
    }
    current = {};
    world.opened();
    number_labels();
    sum_up();
  }

  static error_context place(const location& l, row_range rows) {
    return {.file = l.file.string(), .dataset = l.dataset, .rows = rows, .hdf5 = {}, .system = 0};
  }

  void add(location where);
  void open_file_of(const location& where);
  source_file file_of(const open_dataset& dataset);
  void sum_up();
  void number_labels();
  std::size_t cache_slots(const read_resources& resources) const noexcept;
  std::vector<memory_item> memory(const read_resources& resources) const;
  void reserve(const read_resources& resources);
  void read_segment(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out, scratch& s) const;
  std::size_t number_of_segment(std::uint64_t row) const;

  mutable read_world world;
  row_format format;
  std::vector<segment> segments;
  std::vector<open_segment> opened;
  std::vector<std::string> class_names;
  std::uint64_t rows = 0;
  std::size_t open_files = 1;
  bool allow_missing_sources = false;
  reader_memory needs;  // the largest of each, but the sums of what is held
  std::unique_ptr<scratch_pool> scratches;
  std::once_flag reserved;

  struct {
    std::filesystem::path path;
    file_id file, linked;
    std::size_t number = 0;
  } current;  // while opening: segments of one file follow each other
};

void row_reader::impl::open_file_of(const location& where) {
  if (current.file && current.path == where.file) return;
  if (world.faults)
    if (const fault f = world.faults->before(fault_site::open_file, where.file.native(), 0, 0); f.error != 0)
      throw failure(fmt::format("it cannot be opened: {}", std::generic_category().message(f.error)), f.error);
  const auto identity = probe(where.file);
  current.file = open_hdf5(where.file);
  current.path = where.file;
  current.number = world.add_file(where.file, identity);
}

/// A link may lead into another file.
source_file row_reader::impl::file_of(const open_dataset& dataset) {
  const library_guard guard;
  std::string name(4096, '\0');
  const auto length = checked(H5Fget_name(dataset.id.native(), name.data(), name.size()), "its file has no name");
  name.resize(std::min(static_cast<std::size_t>(length), name.size() - 1));
  if (std::filesystem::path(name) == current.path) return {current.number, current.number, current.file.native()};
  current.linked.reset(checked(H5Iget_file_id(dataset.id.native()), "its file cannot be found"));
  return {world.add_file(name, probe(name)), current.number, current.linked.native()};
}

void row_reader::impl::add(location where) {
  open_file_of(where);
  const open_dataset dataset(current.file.native(), where.dataset);
  const auto d = std::make_shared<const dataset_description>(describe_dataset(dataset));
  if (!d->info.unreadable.empty())
    throw failure(fmt::format("{} is not read: {}", d->info.type_text, d->info.unreadable));
  const auto part = part_of(*d, where);
  auto mine = format_of(*d, part, where.row_axis);
  if (segments.empty())
    format = std::move(mine);
  else if (!mine.same_as(format))
    throw failure(
        fmt::format("its rows are {}, but those of {}:{} are {}; the datasets of a field need one type and row shape",
                    mine.text(), segments[0].where.file.string(), segments[0].where.dataset, format.text()));
  const auto row_axis = where.row_axis;
  segment s{std::move(where), rows, d->rank > 0 ? part.count[row_axis] : 1, d->info};
  open_segment o;
  o.row_axis = row_axis;
  o.part = part;
  std::uint64_t total_bytes = 0;
  if (__builtin_add_overflow(rows, s.rows, &rows) ||
      __builtin_mul_overflow(rows, std::max<std::uint64_t>(format.bytes, 1), &total_bytes))
    throw failure("the field has more rows than can be counted");
  o.reader = open_reader(world, file_of(dataset), dataset, d, s.info);
  if (!allow_missing_sources && !s.info.missing_sources.empty())
    throw failure(fmt::format(
        "it is virtual, and {} of its sources are missing, the first {}; their values would be fill values: "
        "set read_options::allow_missing_sources to read them so",
        s.info.missing_sources.size(), s.info.missing_sources.front()));

  o.text_padding = d->value.text_padding;
  segments.push_back(std::move(s));
  opened.push_back(std::move(o));
}

/// One code for one text, in all segments: its place among all texts, sorted.
void row_reader::impl::number_labels() {
  std::set<std::string> all;
  for (const auto& o : opened)
    if (const auto* labels = dynamic_cast<const label_reader*>(o.reader.get()))
      for (auto& name : labels->names()) all.insert(std::move(name));
  class_names.assign(all.begin(), all.end());
  for (const auto& o : opened)
    if (auto* labels = dynamic_cast<label_reader*>(o.reader.get())) labels->number_by(class_names);
}

void row_reader::impl::sum_up() {
  for (const auto& o : opened) {
    const auto m = o.reader->memory(o.row_axis);
    needs.scratch.include(m.scratch);
    needs.index_bytes += m.index_bytes;
    needs.staged_bytes += m.staged_bytes;
    needs.cut_chunks = std::max(needs.cut_chunks, m.cut_chunks);
    needs.chunk_bytes = std::max(needs.chunk_bytes, m.chunk_bytes);
    needs.library_bytes = std::max(needs.library_bytes, m.library_bytes);
  }
  if (needs.cut_chunks == 0) needs.chunk_bytes = 0;
}

/// No more slots than there are chunks.
std::size_t row_reader::impl::cache_slots(const read_resources& resources) const noexcept {
  if (needs.chunk_bytes == 0) return 0;
  const auto slots = std::max(resources.cache_bytes / needs.chunk_bytes, needs.cut_chunks * resources.concurrency);
  return std::min(slots, needs.index_bytes / sizeof(chunk_entry));
}

std::vector<memory_item> row_reader::impl::memory(const read_resources& resources) const {
  std::vector<memory_item> items;
  const auto add = [&](const char* name, std::size_t bytes) {
    if (bytes > 0) items.push_back({name, bytes});
  };
  add("chunk index", needs.index_bytes);
  add("staged datasets", needs.staged_bytes);
  add("read scratch", resources.concurrency * needs.scratch.bytes());
  add("decoded chunks", cache_slots(resources) * needs.chunk_bytes);
  add("libhdf5's chunk caches", needs.library_bytes * std::min(open_files, opened.size()));
  return items;
}

void row_reader::impl::reserve(const read_resources& resources) {
  if (resources.concurrency == 0)
    throw std::invalid_argument("read_resources::concurrency is 0; one read at a time is the least");
  with_context(place(segments.front().where, {}), [&] {
    scratches = std::make_unique<scratch_pool>(resources.concurrency, needs.scratch);
    const auto slots = cache_slots(resources);
    world.cache = slots > 0 ? std::make_unique<chunk_cache>(slots, needs.chunk_bytes) : nullptr;
  });
}

std::size_t row_reader::impl::number_of_segment(std::uint64_t row) const {
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), row, [](auto r, const auto& s) { return r < s.first_row; });
  auto n = static_cast<std::size_t>(after - segments.begin()) - 1;
  return n;
}

void row_reader::impl::read_segment(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out,
                                    scratch& s) const {
  const auto& o = opened[n];
  read_request request;
  request.part = o.part;
  request.row_axis = o.row_axis;
  request.out = out;
  if (o.part.rank > 0) {
    request.part.start[o.row_axis] = first;
    request.part.count[o.row_axis] = count;
    // Rows follow each other; within a row the other axes keep their order.
    std::uint64_t stride = format.value_bytes;
    for (std::size_t k = o.part.rank; k-- > 0;) {
      if (k == o.row_axis) continue;
      request.strides[k] = stride;
      stride *= request.part.count[k];
    }
    request.strides[o.row_axis] = stride;
  }
  const auto& where = segments[n].where;
  with_context(place(where, {first, count}), [&] {
    o.reader->read(request, s);
    clear_padding(o.text_padding, format.value_bytes, {out, count * format.bytes});
  });
}

row_reader::row_reader(std::vector<location> segments, read_options options)
    : impl_(std::make_unique<impl>(std::move(segments), options)) {}
row_reader::row_reader(row_reader&&) noexcept = default;
row_reader& row_reader::operator=(row_reader&&) noexcept = default;
row_reader::~row_reader() = default;

std::uint64_t row_reader::rows() const noexcept { return impl_->rows; }
const std::vector<std::uint64_t>& row_reader::row_shape() const noexcept { return impl_->format.shape; }
const element_type& row_reader::element() const noexcept { return impl_->format.element; }
std::size_t row_reader::row_bytes() const noexcept { return impl_->format.bytes; }

const std::vector<std::string>& row_reader::class_names() const noexcept { return impl_->class_names; }

std::uint64_t row_reader::chunk_rows() const noexcept {
  const auto& first = impl_->segments.front();
  return first.info.chunk_shape.empty() ? 1 : first.info.chunk_shape[first.where.row_axis];
}

const std::vector<row_reader::segment>& row_reader::segments() const noexcept { return impl_->segments; }

const row_reader::segment& row_reader::segment_of(std::uint64_t row) const {
  if (row >= rows()) throw std::invalid_argument(fmt::format("row {} is past the end: there are {} rows", row, rows()));
  return impl_->segments[impl_->number_of_segment(row)];
}

std::vector<memory_item> row_reader::memory(const read_resources& resources) const { return impl_->memory(resources); }

std::size_t row_reader::cut_bytes() const noexcept { return impl_->needs.cut_chunks * impl_->needs.chunk_bytes; }

void row_reader::reserve(const read_resources& resources) { impl_->reserve(resources); }

void row_reader::read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  if (first > rows() || count > rows() - first)
    throw std::invalid_argument(fmt::format("rows {} + {} are past the end: there are {} rows", first, count, rows()));
  if (out.size() != count * row_bytes())
    throw std::invalid_argument(fmt::format("{} rows of {} bytes need {} bytes, but {} are given", count, row_bytes(),
                                            count * row_bytes(), out.size()));
  if (out.empty()) return;
  std::call_once(impl_->reserved, [this] {
    if (!impl_->scratches) impl_->reserve({});
  });
  const auto s = impl_->scratches->borrow();
  auto* to = out.data();
  for (auto n = impl_->number_of_segment(first); count > 0; ++n) {
    const auto& part = impl_->segments[n];
    const auto start = first - part.first_row;
    const auto some = std::min(count, part.rows - start);
    if (some == 0) continue;  // a segment without rows
    impl_->read_segment(n, start, some, to, *s);
    first += some;
    count -= some;
    to += some * row_bytes();
  }
}

read_statistics row_reader::statistics() const { return impl_->world.count.snapshot(); }

}  // namespace penstock::io
