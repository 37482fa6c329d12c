#include "ask_for_memory.hpp"
#include "chunk_index.hpp"
#include "row_reader_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;  // stored bytes that are converted together
constexpr std::size_t bounce_bytes = (std::size_t{1} << 20) + direct_alignment;  // 1 MiB, wherever it starts

}  // namespace

void row_reader::impl::sum_up() {
  for (std::size_t n = 0; n < opened.size(); ++n) {
    const open_segment& o = opened[n];
    const auto m = o.reader->memory(o.row_axis);
    segments[n].cut_rows = m.cut_chunks == 0 ? 0 : m.cut_rows;
    needs.scratch.include(m.scratch);
    needs.index_bytes += m.index_bytes;
    needs.mapping_bytes += m.mapping_bytes;
    needs.staged_bytes += m.staged_bytes;
    needs.cut_chunks = std::max(needs.cut_chunks, m.cut_chunks);
    needs.chunk_bytes = std::max(needs.chunk_bytes, m.chunk_bytes);
    needs.cut_rows = std::max(needs.cut_rows, m.cut_rows);
    needs.check_bytes = std::max({needs.check_bytes, m.check_bytes, o.check_bytes});
    open_mapping_bytes = std::max(open_mapping_bytes, o.mapping_bytes);
    open_mappings += o.mapping_bytes > 0;
    needs.library_bytes = std::max(needs.library_bytes, m.library_bytes);
    needs.library_datasets += m.library_datasets;
  }
  if (needs.cut_chunks == 0) needs.chunk_bytes = needs.cut_rows = 0;
  if (world.how == caching::around) needs.scratch.bounce_bytes = bounce_bytes;
}

void row_reader::impl::convert(const value_options& values) {
  const auto& first = segments.front().where;
  with_context(place(first, {}), [&] { given.element = converted(stored.element, values); });
  const auto widened = [&](std::size_t bytes) {
    return bytes / size_of(stored.element.element) * size_of(given.element.element);
  };
  given.shape = stored.shape;
  given.value_bytes = widened(stored.value_bytes);
  given.bytes = widened(stored.bytes);
  for (std::size_t n = 0; n < opened.size(); ++n) {
    with_context(place(segments[n].where, {}), [&] {
      if (values.netcdf && !opened[n].not_packed.empty()) throw failure(opened[n].not_packed);
      opened[n].conversion = {stored.element, given.element, values, opened[n].packed};
    });
  }
  needs.scratch.value_bytes = given.bytes < stored.bytes ? std::max(piece_bytes, stored.bytes) : 0;
}

/// No more slots than there are chunks.
std::size_t row_reader::impl::cache_slots(const read_resources& resources) const noexcept {
  if (needs.chunk_bytes == 0) return 0;
  // A read holds one chunk at a time.
  const auto slots = resources.cache_bytes == 0
                         ? needs.cut_chunks * resources.concurrency
                         : std::max(resources.cache_bytes / needs.chunk_bytes, resources.concurrency);
  return std::min(slots, needs.index_bytes / sizeof(chunk_entry));
}

std::vector<memory_item> row_reader::impl::memory(const read_resources& resources) const {
  std::vector<memory_item> items;
  const auto add = [&](const char* name, std::size_t bytes) {
    if (bytes > 0) items.push_back({name, bytes});
  };
  add(memory_items::chunk_index, needs.index_bytes);
  add(memory_items::mappings, needs.mapping_bytes + open_mapping_bytes * std::min(open_files, open_mappings));
  add(memory_items::staged, needs.staged_bytes);
  add(memory_items::scratch, resources.concurrency * needs.scratch.bytes());
  add(memory_items::check, 2 * needs.check_bytes);
  add(memory_items::decoded, cache_slots(resources) * needs.chunk_bytes);
  add(memory_items::library, needs.library_bytes * std::min(open_files, needs.library_datasets));
  return items;
}

void row_reader::impl::reserve(const read_resources& resources) {
  if (resources.concurrency == 0)
    throw std::invalid_argument("read_resources::concurrency is 0; one read at a time is the least");
  with_context(place(segments.front().where, {}), [&] {
    ask_for_memory(world.faults, memory_items::scratch, resources.concurrency * needs.scratch.bytes());
    auto made = std::make_unique<scratch_pool>(resources.concurrency, needs.scratch);
    {
      const library_guard guard;
      world.checks.reserve(needs.check_bytes);
    }
    const auto slots = cache_slots(resources);
    ask_for_memory(world.faults, memory_items::decoded, slots * needs.chunk_bytes);
    world.cache = slots > 0 ? std::make_unique<chunk_cache>(slots, needs.chunk_bytes) : nullptr;
    scratches = std::move(made);
  });
}

/// Unless reserve() was called before. Where it fails, the next read tries again: std::call_once would hang then under
/// ThreadSanitizer, and in C++ libraries that do not have glibc's pthread_once.
void row_reader::impl::reserve_if_needed() {
  if (is_reserved.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(reserving);
  if (!scratches) reserve({});
  is_reserved.store(true, std::memory_order_release);
}

std::size_t row_reader::impl::number_of_segment(std::uint64_t row) const {
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), row, [](auto r, const auto& s) { return r < s.first_row; });
  auto n = static_cast<std::size_t>(after - segments.begin()) - 1;
  return n;
}

/// What is converted lies in the processor's cache: pieces are small, but for whole chunks that are decoded.
std::uint64_t row_reader::impl::rows_of_piece(std::size_t n, std::uint64_t first, std::uint64_t count) const {
  const auto& info = segments[n].info;
  if (info.layout == layout::virtual_dataset && stored.bytes <= given.bytes) return count;
  const auto some = std::max<std::uint64_t>(1, piece_bytes / std::max<std::size_t>(stored.bytes, 1));
  if (info.filters.empty() || stored.bytes > given.bytes) return std::min(count, some);
  const auto chunk = info.chunk_shape[opened[n].row_axis];
  const auto chunks = std::max<std::uint64_t>(1, some / chunk);
  return std::min(count, (first / chunk + chunks) * chunk - first);
}

void row_reader::impl::read_segment(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out,
                                    scratch& s) const {
  const auto& convert = opened[n].conversion;
  if (convert.empty()) return read_stored(n, first, count, out, s);
  while (count > 0) {
    const auto some = rows_of_piece(n, first, count);
    // Values that grow lie at the end of where they go; those that shrink are read elsewhere first.
    auto* from = given.bytes < stored.bytes ? s.values().data() : out + some * given.bytes - some * stored.bytes;
    read_stored(n, first, some, from, s);
    const stopwatch watch(world.count.decode_nanoseconds);
    convert(from, out, some * stored.elements());
    first += some;
    count -= some;
    out += some * given.bytes;
  }
}

void row_reader::impl::read_stored(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out,
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
    std::uint64_t stride = stored.value_bytes;
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
    clear_padding(o.text_padding, o.text_bytes, {out, count * stored.bytes});
  });
}

row_reader::row_reader(std::vector<location> segments, read_options options)
    : impl_(std::make_unique<impl>(std::move(segments), options)) {}
row_reader::row_reader(row_reader&&) noexcept = default;
row_reader& row_reader::operator=(row_reader&&) noexcept = default;
row_reader::~row_reader() = default;

std::uint64_t row_reader::rows() const noexcept { return impl_->rows; }
const std::vector<std::uint64_t>& row_reader::row_shape() const noexcept { return impl_->given.shape; }
const element_type& row_reader::element() const noexcept { return impl_->given.element; }
std::size_t row_reader::row_bytes() const noexcept { return impl_->given.bytes; }

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

std::uint64_t row_reader::cut_rows() const noexcept { return impl_->needs.cut_rows; }

std::uint64_t row_reader::decoded_rows() const noexcept { return impl_->decoded_rows; }

void row_reader::reserve(const read_resources& resources) { impl_->reserve(resources); }

void row_reader::read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  if (first > rows() || count > rows() - first)
    throw std::invalid_argument(fmt::format("rows {} + {} are past the end: there are {} rows", first, count, rows()));
  if (out.size() != count * row_bytes())
    throw std::invalid_argument(fmt::format("{} rows of {} bytes need {} bytes, but {} are given", count, row_bytes(),
                                            count * row_bytes(), out.size()));
  if (out.empty()) return;
  impl_->reserve_if_needed();
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
