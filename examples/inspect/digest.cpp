#include "digest.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

namespace examples {
namespace io = penstock::io;
namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;

/// Turns each element of `size` bytes round.
void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t at = 0; at + size <= bytes.size(); at += size)
    std::reverse(bytes.data() + at, bytes.data() + at + size);
}

/// The bits of a bfloat16 are the upper half of a float32.
std::vector<std::byte> widen_bfloat16(std::span<const std::byte> bytes) {
  std::vector<std::byte> wide(bytes.size() * 2);
  for (std::size_t n = 0; n < bytes.size() / 2; ++n) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * n, sizeof half);
    const auto word = static_cast<std::uint32_t>(half) << 16;
    std::memcpy(wide.data() + 4 * n, &word, sizeof word);
  }
  return wide;
}

/// The crc32 of some bytes by themselves.
struct checksum {
  uLong crc32 = 0;
  std::size_t bytes = 0;
};

checksum checksum_of(std::span<const std::byte> bytes) {
  return {crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), bytes.size()};
}

/// Whether every row is the fill value: then one piece tells of all.
bool stores_nothing(const io::dataset_info& d) {
  return d.stored_bytes == 0 && (d.layout == io::layout::contiguous || d.layout == io::layout::chunked);
}

/// A header may claim any number of rows: those of fill values alone would take days.
void refuse_fill(const io::row_reader& reader) {
  constexpr double much = 64.0 * (1 << 30);
  const double claimed = static_cast<double>(reader.rows()) * static_cast<double>(reader.row_bytes());
  const auto& part = reader.segments().front();
  if (claimed > much && claimed > 1000.0 * static_cast<double>(part.info.stored_bytes))
    throw io::error(
        fmt::format("it claims {:.3g} bytes and stores {}: the rest are fill values, which are not digested", claimed,
                    part.info.stored_bytes),
        {.file = part.where.file.string(), .dataset = part.where.dataset, .rows = {}, .hdf5 = {}, .system = 0});
}

}  // namespace

digested digest(const std::filesystem::path& file, const std::string& dataset) try {
  const std::vector<io::location> segments{{file, dataset}};
  io::row_reader reader(segments, {.allow_missing_sources = true, .faults = {}});
  reader.reserve({.concurrency = 1, .cache_bytes = reader.cut_bytes()});
  const auto& element = reader.element();
  refuse_fill(reader);
  const auto fitting = std::max<std::uint64_t>(1, piece_bytes / std::max<std::size_t>(reader.row_bytes(), 1));
  const auto whole_chunks = fitting / reader.chunk_rows() * reader.chunk_rows();
  const auto rows = std::min(reader.rows(), whole_chunks > 0 ? whole_chunks : fitting);
  std::vector<std::byte> piece(rows * reader.row_bytes());
  const auto read = [&](std::uint64_t first, std::uint64_t count) {
    const std::span<std::byte> bytes(piece.data(), count * reader.row_bytes());
    reader.read(first, count, bytes);
    if (element.swapped) swap_bytes(bytes, penstock::size_of(element.element));
    return element.element == penstock::type::bfloat16 ? checksum_of(widen_bfloat16(bytes)) : checksum_of(bytes);
  };
  const bool all_alike = stores_nothing(reader.segments().front().info);
  uLong crc = 0;
  checksum part;
  for (std::uint64_t first = 0; first < reader.rows(); first += rows) {
    const auto count = std::min(rows, reader.rows() - first);
    if (first == 0 || count < rows || !all_alike) part = read(first, count);
    crc = crc32_combine(crc, part.crc32, static_cast<z_off_t>(part.bytes));
  }
  const auto& how = reader.segments().front().info;
  return {fmt::format("{:08x}", crc), how.access, how.reason};
} catch (const std::bad_alloc&) {
  throw io::error("there is not enough host memory for one of its rows",
                  {.file = file.string(), .dataset = dataset, .rows = {}, .hdf5 = {}, .system = ENOMEM});
}

}  // namespace examples
