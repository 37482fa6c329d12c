#include "rounding.hpp"

#include "values.hpp"

#include <penstock/io/row_reader.hpp>
#include <penstock/type.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace examples {
namespace {

namespace io = penstock::io;

constexpr double least_share = 1e-5;  // of the mean: float32 keeps steps of 6e-8 of it, so a hundred in a deviation
constexpr std::uint64_t most_rows = 65536;
constexpr std::size_t most_sentences = 8;

bool float32_holds(penstock::type stored) {
  return penstock::is_floating(stored) ? penstock::size_of(stored) <= 4 : penstock::size_of(stored) <= 2;
}

struct range {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
};

/// Of the first values of some columns, as they are stored.
std::vector<range> ranges_of(io::row_reader& reader, const std::vector<std::size_t>& columns) {
  const std::uint64_t chunk = std::max<std::uint64_t>(reader.chunk_rows(), 1);
  const std::uint64_t rows = std::min(reader.rows(), std::max<std::uint64_t>(1, most_rows / chunk) * chunk);
  const std::uint64_t piece =
      std::max<std::uint64_t>(1, (std::uint64_t{4} << 20) / std::max<std::size_t>(reader.row_bytes(), 1));
  const std::size_t width = reader.row_bytes() / penstock::size_of(reader.element().element);
  std::vector<range> ranges(columns.size());
  std::vector<std::byte> bytes;
  reader.reserve({});
  for (std::uint64_t first = 0; first < rows; first += piece) {
    const std::uint64_t count = std::min(piece, rows - first);
    bytes.resize(count * reader.row_bytes());
    try {
      reader.read(first, count, bytes);
    } catch (const io::error& e) {  // what becomes of damage is said where it matters
      if (!e.context().damaged) throw;
      continue;
    }
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t c = 0; c < columns.size(); ++c)
        if (const double value = value_at(reader.element(), bytes.data(), n * width + columns[c]); std::isfinite(value))
          ranges[c] = {std::min(ranges[c].least, value), std::max(ranges[c].most, value)};
  }
  return ranges;
}

std::string sentence_of(const io::location& where, std::size_t column, penstock::type stored, const range& values) {
  const double middle = std::max(std::abs(values.least), std::abs(values.most));
  const double step = std::ldexp(1.0, std::ilogb(middle) - 23);
  return fmt::format(
      "{}:{} column {}: its {} values, from {:.9g} on, differ by {:.3g} or so, and become float32, which "
      "keeps steps of {:.3g} there: what they say is lost, or coarse; store them less a constant, as their "
      "mean or the first",
      where.file.string(), where.dataset, column, penstock::name_of(stored), values.least, values.most - values.least,
      step);
}

}  // namespace

std::vector<std::string> rounded_columns(const std::vector<io::location>& x,
                                         const penstock::train::input_statistics& statistics) {
  std::vector<std::string> sentences;
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < statistics.mean.size(); ++c)
    if (statistics.deviation[c] < least_share * std::abs(statistics.mean[c])) columns.push_back(c);
  if (columns.empty() || x.empty()) return sentences;
  io::row_reader reader(x);
  const penstock::type stored = reader.element().element;
  if (float32_holds(stored)) return sentences;
  const std::vector<range> ranges = ranges_of(reader, columns);
  std::size_t more = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!(ranges[c].most > ranges[c].least)) continue;  // they are the same
    if (sentences.size() < most_sentences)
      sentences.push_back(sentence_of(x.front(), columns[c], stored, ranges[c]));
    else
      ++more;
  }
  if (more > 0) sentences.push_back(fmt::format("and {} columns more", more));
  return sentences;
}

}  // namespace examples
