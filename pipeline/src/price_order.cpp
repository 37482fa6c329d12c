#include "price_order.hpp"

#include <penstock/bytes.hpp>
#include <penstock/pipeline/price.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t rows_looked_at = 1 << 20;

/// Rows that come out of decoders where these extents are read, each chunk decoded once until another is.
std::uint64_t decoded_rows(const io::row_reader& reader, const std::vector<extent>& extents) {
  const std::uint64_t chunk = std::max(reader.chunk_rows(), reader.cut_rows());
  std::uint64_t decoded = 0, last = ~std::uint64_t{0};
  for (const extent& e : extents)
    for (std::uint64_t row = e.first; row < e.first + e.count;) {
      const io::row_reader::segment& part = reader.segment_of(row);
      const std::uint64_t first = part.first_row + (row - part.first_row) / chunk * chunk;
      if (first != last) decoded += std::min(chunk, part.first_row + part.rows - first);
      last = first;
      row = std::min(first + chunk, part.first_row + part.rows);
    }
  return decoded;
}

}  // namespace

double read_amplification(const order& rows, const std::vector<io::row_reader>& readers) {
  const std::uint64_t looked_at = std::min(rows.rows(), rows_looked_at);
  std::vector<extent> extents;
  rows.read(0, 0, looked_at, extents);
  double used = 0, decoded = 0;
  for (const io::row_reader& reader : readers) {
    const auto bytes = static_cast<double>(reader.row_bytes());
    used += bytes * static_cast<double>(looked_at);
    const bool in_pieces = reader.cut_bytes() == 0;  // rows are read by themselves, chunks or not
    decoded += bytes * static_cast<double>(in_pieces ? looked_at : decoded_rows(reader, extents));
  }
  return used > 0 ? decoded / used : 1;
}

std::string to_text(const order_price& price) {
  std::string text = price.pool_bytes ? fmt::format("holds a pool of {}", format_bytes(price.pool_bytes)) : "no pool";
  if (price.table_bytes) text += fmt::format(", tables of {} on the host", format_bytes(price.table_bytes));
  text += fmt::format("; each byte is read {:.2f} times", price.read_amplification);
  if (price.mixing) text += fmt::format("; a batch mixes classes to {:.3f} of a uniform shuffle", *price.mixing);
  return text;
}

}  // namespace penstock::pipeline
