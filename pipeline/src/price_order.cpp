#include "price_order.hpp"

#include "mixed_rows.hpp"

#include <penstock/bytes.hpp>
#include <penstock/pipeline/price.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t rows_looked_at = 1 << 20;

/// Rows that are read or decoded for these extents, each chunk decoded once until another is.
std::uint64_t decoded_rows(const io::row_reader& reader, const std::vector<extent>& extents) {
  std::uint64_t decoded = 0, last = ~std::uint64_t{0};
  for (const extent& e : extents)
    for (std::uint64_t row = e.first; row < e.first + e.count;) {
      const io::row_reader::segment& part = reader.segment_of(row);
      const std::uint64_t chunk = part.cut_rows;
      if (chunk == 0) {  // rows are read by themselves, chunks or not
        const std::uint64_t end = std::min(e.first + e.count, part.first_row + part.rows);
        decoded += end - row;
        row = end;
        continue;
      }
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
    decoded += bytes * static_cast<double>(decoded_rows(reader, extents));
  }
  return used > 0 ? decoded / used : 1;
}

std::optional<double> batches_of_one_source(const order& rows, const row_supply& supply, std::uint64_t batch_rows) {
  const std::uint64_t batches = rows.rows() / std::max<std::uint64_t>(batch_rows, 1);
  if (!supply.mix || supply.mix->parts.size() < 2 || batches == 0) return std::nullopt;
  const auto part_of = [&](std::uint64_t row) {
    const std::uint64_t place = supply.only ? supply.only->chosen_before(row) : row;
    return std::ranges::upper_bound(supply.mix->parts, place, {}, &mix_table::part::first) - supply.mix->parts.begin();
  };
  const std::uint64_t looked_at = std::min(batches, std::max<std::uint64_t>(rows_looked_at / batch_rows, 1));
  std::uint64_t of_one = 0;
  for (std::uint64_t i = 0; i < looked_at; ++i) {
    const std::uint64_t first = i * batches / looked_at * batch_rows;
    const auto part = part_of(rows.row(0, first));
    std::uint64_t same = 1;
    while (same < batch_rows && part_of(rows.row(0, first + same)) == part) ++same;
    of_one += same == batch_rows;
  }
  return static_cast<double>(of_one) / static_cast<double>(looked_at);
}

std::string to_text(const order_price& price) {
  constexpr double decodes_again = 1.5;

  std::string text = price.pool_bytes ? fmt::format("holds a pool of {}", format_bytes(price.pool_bytes)) : "no pool";
  if (price.table_bytes) text += fmt::format(", tables of {} on the host", format_bytes(price.table_bytes));
  text += fmt::format("; each byte is read {:.2f} times", price.read_amplification);
  if (price.read_amplification >= decodes_again)
    text +=
        " (chunks are decoded so often in an epoch, less what blocks that hold several rows of one save; a shuffled "
        "order of whole chunks and of all rows decodes each once)";
  if (price.mixing) text += fmt::format("; a batch mixes classes to {:.3f} of a uniform shuffle", *price.mixing);
  if (price.batches_of_one_source && *price.batches_of_one_source > 0)
    text += fmt::format("; {:.1f} % of the batches hold rows of one source alone", 100 * *price.batches_of_one_source);
  return text;
}

}  // namespace penstock::pipeline
