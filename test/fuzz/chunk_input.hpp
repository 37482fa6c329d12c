#pragma once

#include "chunk_grid.hpp"
#include "chunk_index.hpp"
#include "describe.hpp"
#include "filters/filter_chain.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::fuzz {

/// A chunked dataset, its index and its file, as an input describes them. Little-endian:
///
///   u8  bits: 0-1 rank less 1 (3: 1), 2 sparse index, 3 partial chunks are not filtered, 4 cut chunks are kept,
///       5 values are members of a compound, 6-7 bytes of a value: 1, 2, 4, 8
///   u8  bits: 0-6 row axis, modulo the rank, 7 memory of exactly the sizes that the reader asks for
///   u8, u8  for each axis: its extent and that of a chunk, less 1, modulo what keeps all small
///   u8  number of filters, modulo 5; for each: u8 its number in `filters`, u8 number of its parameters, modulo 9,
///       u16 for each of them, which 0xffff makes 0xffffffff
///   u8  number of entries; for each: u8 how, then the chunk's number, address, bytes and mask.
///       how, bits 0-1: the number is the last one's and 1; u8; u16; u64. 2-3: the address follows the last chunk; u8;
///       u16; u64. 4-5: as many bytes as a chunk has; u8; u16; u32. 6-7: mask 0; u8; all bits; u32
///   u8  number of parts that are read, modulo 4, beside the whole; for each: u8, u8 for each axis: start and count
///   the rest: the file.
struct chunk_input {
  io::shared_description description;
  std::size_t row_axis = 0;
  bool sparse = false, keeps_chunks = false, exact_scratch = false;
  std::vector<io::chunk_index::numbered> entries;
  std::vector<io::box> parts;
  std::vector<std::byte> file;

  /// What a dense index cannot say is left out: numbers that there are not; of those that come twice, all but the last.
  io::chunk_index index(const io::chunk_grid& grid) const {
    if (sparse) return io::chunk_index(entries);
    std::vector<io::chunk_entry> all(grid.chunks());
    for (const auto& e : entries)
      if (e.number < all.size()) all[e.number] = e.entry;
    return io::chunk_index(std::move(all));
  }

  /// What may be taken for the chunk's entry.
  std::vector<io::chunk_entry> entries_of(std::uint64_t number) const {
    std::vector<io::chunk_entry> all;
    for (const auto& e : entries)
      if (e.number == number) all.push_back(e.entry);
    if (all.empty()) all.emplace_back();
    if (!sparse) all.erase(all.begin(), all.end() - 1);
    return all;
  }
};

/// Bytes taken from an input, one after the other; zeros after its end.
class input_bytes {
 public:
  explicit input_bytes(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  std::uint64_t take(std::size_t width) {
    std::uint64_t value = 0;
    const auto n = std::min(width, rest_.size());
    std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

inline std::vector<io::filter> take_filters(input_bytes& in) {
  static constexpr std::array numbers{1, 2, 3, 4, 32000, 32001, 32004, 32008, 32015};
  std::vector<io::filter> all;
  for (auto left = in.take(1) % 5; left-- > 0;) {
    io::filter f{numbers[in.take(1) % numbers.size()], "fuzzed", {}};
    for (auto values = in.take(1) % 9; values-- > 0;) {
      const auto value = static_cast<unsigned>(in.take(2));
      f.values.push_back(value == 0xffff ? ~0u : value);
    }
    all.push_back(std::move(f));
  }
  return all;
}

inline std::vector<io::chunk_index::numbered> take_entries(input_bytes& in, std::uint64_t chunk_bytes) {
  static constexpr std::array<std::size_t, 4> of_numbers{0, 1, 2, 8}, of_bytes{0, 1, 2, 4}, of_masks{0, 1, 0, 4};
  std::vector<io::chunk_index::numbered> all;
  io::chunk_index::numbered last{~std::uint64_t{0}, {0, 0, 0}};
  for (auto left = in.take(1); left-- > 0;) {
    const auto how = in.take(1);
    const auto number = how & 3, address = how >> 2 & 3, bytes = how >> 4 & 3, mask = how >> 6;
    const auto follows = last.entry.address + last.entry.bytes;
    last.number = number == 0 ? last.number + 1 : in.take(of_numbers[number]);
    last.entry.address = address == 0 ? follows : in.take(of_numbers[address]);
    last.entry.bytes = static_cast<std::uint32_t>(bytes == 0 ? chunk_bytes : in.take(of_bytes[bytes]));
    last.entry.mask = mask == 2 ? ~0u : static_cast<std::uint32_t>(in.take(of_masks[mask]));
    all.push_back(last);
  }
  return all;
}

inline std::vector<io::box> take_parts(input_bytes& in, const std::vector<std::uint64_t>& shape) {
  io::box whole;
  whole.rank = shape.size();
  std::copy(shape.begin(), shape.end(), whole.count.begin());
  std::vector<io::box> all{whole};
  for (auto left = in.take(1) % 4; left-- > 0;) {
    io::box part = whole;
    for (std::size_t k = 0; k < whole.rank; ++k) {
      part.start[k] = in.take(1) % shape[k];
      part.count[k] = 1 + in.take(1) % (shape[k] - part.start[k]);
    }
    all.push_back(part);
  }
  return all;
}

inline constexpr std::array<std::size_t, 4> most_extent{0, 256, 24, 10};  ///< by rank
inline constexpr std::size_t most_values = 1000, most_value_bytes = 8;

/// Nothing where Penstock would leave the dataset to libhdf5, or reading it would take long.
inline std::optional<chunk_input> parse_chunk_input(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t member_offset = 3;
  input_bytes in(bytes);
  chunk_input result;
  const auto bits = in.take(1);
  const std::size_t rank = 1 + (bits & 3) % 3;
  result.sparse = bits & 4, result.keeps_chunks = bits & 16;
  const auto more_bits = in.take(1);
  result.row_axis = (more_bits & 127) % rank, result.exact_scratch = more_bits & 128;

  const auto d = std::make_shared<io::dataset_description>();
  d->info.layout = io::layout::chunked;
  d->info.access = io::access::direct;
  d->rank = rank;
  d->partial_chunks_unfiltered = bits & 8;
  d->value.bytes = std::size_t{1} << (bits >> 6);
  d->value.offset = bits & 32 ? member_offset : 0;
  d->value.stored_bytes = d->value.bytes + 2 * d->value.offset;
  io::fill_value::bytes fill;
  for (std::size_t n = 0; n < d->value.bytes; ++n) fill.push_back(static_cast<std::byte>(0xa0 + n));
  d->fill_value = io::fill_value(std::move(fill));
  for (std::size_t k = 0; k < rank; ++k) {
    d->info.shape.push_back(1 + in.take(1) % most_extent[rank]);
    d->info.chunk_shape.push_back(1 + in.take(1) % (2 * most_extent[rank]));
  }
  const auto chunk_bytes = io::chunk_bytes(*d);
  d->info.filters = take_filters(in);
  if (!io::why_not_decodable(d->info.filters, chunk_bytes).empty()) return std::nullopt;
  result.entries = take_entries(in, chunk_bytes);
  result.parts = take_parts(in, d->info.shape);
  const auto rest = std::as_bytes(in.rest());
  result.file.assign(rest.begin(), rest.end());
  // Where an HDF5 file says that it is one: libhdf5 is not asked for what decoders do not know.
  for (std::size_t at = 0; at < result.file.size(); at = at == 0 ? 512 : 2 * at) result.file[at] &= std::byte{0x7f};
  result.description = d;
  return result;
}

/// Calls f(position) for each in the box, in C order, until it returns false.
template <class F>
void for_each(const io::box& all, F&& f) {
  if (all.values() == 0) return;
  for (io::extents at = all.start;;) {
    if (!f(at)) return;
    std::size_t k = all.rank;
    while (k > 0 && at[k - 1] == all.start[k - 1] + all.count[k - 1] - 1) {
      --k;
      at[k] = all.start[k];
    }
    if (k == 0) return;
    ++at[k - 1];
  }
}

/// Rows lie one after the other, whatever their axis.
inline io::extents strides_of(const io::box& part, std::size_t row_axis, std::size_t value_bytes) {
  io::extents strides{};
  std::uint64_t bytes = value_bytes;
  for (std::size_t k = part.rank; k-- > 0;)
    if (k != row_axis) bytes *= (strides[k] = bytes, part.count[k]);
  strides[row_axis] = bytes;
  return strides;
}

/// One file in memory, whose bytes are each input's in turn.
class shared_file {
 public:
  shared_file() : fd_(::memfd_create("chunks", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    if (fd_ < 0) std::abort();
  }
  ~shared_file() { ::close(fd_); }
  shared_file(const shared_file&) = delete;
  shared_file& operator=(const shared_file&) = delete;

  void hold(std::span<const std::byte> bytes) const {
    const auto size = static_cast<::ssize_t>(bytes.size());
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, bytes.data(), bytes.size(), 0) != size) std::abort();
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  int fd_;
  std::filesystem::path path_;
};

}  // namespace penstock::fuzz
