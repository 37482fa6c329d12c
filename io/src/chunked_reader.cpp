#include "chunked_reader.hpp"

#include "chunk_pass.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::size_t gather_bytes = std::size_t{1} << 20;   // neighbours are read together up to this size
constexpr std::size_t plain_bytes = std::size_t{256} << 10;  // enough where chunks hold whole rows, unfiltered

}  // namespace

chunked_reader::chunked_reader(read_world& world, std::size_t file, std::size_t through, std::size_t number,
                               shared_description d, chunk_grid grid, chunk_index index)
    : world_(world),
      file_(file),
      number_(number),
      grid_(grid),
      index_(std::move(index)),
      filters_(d->info.filters, chunk_bytes(*d)),
      value_bytes_(d->value.bytes),
      member_offset_(d->value.offset),
      chunk_bytes_(chunk_bytes(*d)),
      chunk_strides_(packed_strides(grid.chunk_shape(), grid.rank(), d->value.stored_bytes)),
      partial_unfiltered_(d->partial_chunks_unfiltered),
      fill_value_(d->fill_value),
      library_(world, through, number, std::move(d), world.files[file].identity.bytes) {
  const auto file_bytes = world_.files[file_].identity.bytes;
  index_.visit_stored([&](std::uint64_t, const chunk_entry& entry) {
    if (entry.address <= file_bytes && entry.bytes <= file_bytes - entry.address)
      largest_stored_ = std::max<std::size_t>(largest_stored_.value_or(0), entry.bytes);
    return true;
  });
}

reader_memory chunked_reader::memory(std::size_t row_axis) const {
  reader_memory m;
  m.index_bytes = index_.bytes();
  if (!largest_stored_) return m;
  if (filters_.empty()) {
    // Where rows are put together from several chunks all bytes pass through this memory. The system's copies are slow
    // to where the processor has just written and read: more than its second-level cache is better than less.
    const auto least = grid_.across(row_axis) > 1 ? gather_bytes : plain_bytes;
    m.scratch.stored_bytes = std::clamp(chunk_bytes_, least, gather_bytes);
    return m;
  }
  m.scratch = library_.memory(row_axis).scratch;
  m.scratch.stored_bytes = std::max(*largest_stored_, gather_bytes);
  m.scratch.decoded_bytes = std::max(m.scratch.decoded_bytes, chunk_bytes_);
  m.scratch.workspace = filters_.workspace(*largest_stored_);
  m.chunk_bytes = chunk_bytes_;
  m.cut_chunks = grid_.chunk_shape()[row_axis] > 1 ? grid_.across(row_axis) : 0;
  m.cut_rows = grid_.chunk_shape()[row_axis];
  return m;
}

std::uint32_t chunked_reader::mask_of(const chunk_entry& entry, const box& inside) const noexcept {
  return partial_unfiltered_ && grid_.partial(inside) ? filters_.all() : entry.mask & filters_.all();
}

bool chunked_reader::is_plain(const chunk_entry& entry, const box& inside) const noexcept {
  return mask_of(entry, inside) == filters_.all();
}

bool chunked_reader::has_wrong_size(const chunk_entry& entry, const box& inside) const noexcept {
  return entry.bytes == 0 || (is_plain(entry, inside) && entry.bytes != chunk_bytes_);
}

bool chunked_reader::has_wrong_size(const box& part) const { return has_wrong_size(entry_of(part), part); }

chunk_entry chunked_reader::entry_of(const box& part) const noexcept {
  extents at{};
  for (std::size_t k = 0; k < grid_.rank(); ++k) at[k] = part.start[k] / grid_.chunk_shape()[k];
  return index_[grid_.number(at)];
}

void chunked_reader::read(const read_request& request, scratch& s) const { pass(*this, request, s).run(); }

stored_chunk chunked_reader::stored(const box& part) const {
  const auto entry = entry_of(part);
  const auto file = world_.open_raw(file_);
  stored_chunk chunk{{}, entry.mask};
  if (entry.address > file->bytes() || entry.bytes > file->bytes() - entry.address) return chunk;
  chunk.bytes.resize(entry.bytes);
  file->read(entry.address, chunk.bytes, {});
  return chunk;
}

std::vector<box> chunked_reader::sample_chunks(std::size_t most) const {
  std::vector<std::uint64_t> numbers;
  const auto add_first_from = [&](std::uint64_t start) {
    index_.visit_stored([&](std::uint64_t number, const chunk_entry&) {
      if (number < start) return true;
      numbers.push_back(number);
      return false;
    });
  };
  add_first_from(0);
  if (most > 1) {
    add_first_from(grid_.chunks() / 2);
    add_first_from(grid_.chunks() - 1);
  }
  std::vector<box> parts;
  for (const auto number : numbers) parts.push_back(grid_.inside(grid_.position(number)));
  return parts;
}

}  // namespace penstock::io
