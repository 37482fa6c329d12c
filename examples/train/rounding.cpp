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
#include <utility>

namespace examples {
namespace {

namespace io = penstock::io;

constexpr double least_share = 1e-5;  // of the mean: float32 keeps steps of 6e-8 of it, so a hundred in a deviation
constexpr std::uint64_t most_rows = 65536;
constexpr std::size_t most_sentences = 8;
constexpr std::uint64_t places = 16;  // that a sample is from

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

/// What the values of a column are like.
struct column_sample {
  range values{};
  double count = 0;
  double mean = 0;
  double squares = 0;  ///< of the differences from the mean, summed

  /// By Welford's formula, which does not take the difference of large sums.
  void add(double value) {
    values = {std::min(values.least, value), std::max(values.most, value)};
    const double before = value - mean;
    mean += before / ++count;
    squares += before * (value - mean);
  }
  double deviation() const { return count > 0 ? std::sqrt(squares / count) : 0; }
};

/// Of all columns, as they are stored, by rows from all over the dataset: of sorted ones the first alone look too much
/// alike. 64 MiB at most, or 16 rows.
std::vector<column_sample> sample_of(io::row_reader& reader) {
  const std::uint64_t most = std::clamp<std::uint64_t>(
      (std::uint64_t{4} << 20) / std::max<std::size_t>(reader.row_bytes(), 1), 1, most_rows / places);
  const std::size_t width = reader.row_bytes() / penstock::size_of(reader.element().element);
  std::vector<column_sample> columns(width);
  std::vector<std::byte> bytes;
  reader.reserve({});
  for (std::uint64_t place = 0, end = 0; place < places && end < reader.rows(); ++place) {
    const std::uint64_t spread = reader.rows() - std::min(most, reader.rows());
    const std::uint64_t first = std::max(end, spread / (places - 1) * place);
    const std::uint64_t rows = std::min(most, reader.rows() - first);
    end = first + rows;
    bytes.resize(rows * reader.row_bytes());
    try {
      reader.read(first, rows, bytes);
    } catch (const io::error& e) {  // what becomes of damage is said where it matters
      if (!e.context().damaged) throw;
      continue;
    }
    for (std::size_t n = 0; n < rows * width; ++n)
      if (const double value = value_at(reader.element(), bytes.data(), n); std::isfinite(value))
        columns[n % width].add(value);
  }
  return columns;
}

/// Whether float32 keeps few steps in what values differ by, if they differ.
bool look_the_same(double mean, double deviation) { return deviation < least_share * std::abs(mean); }

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

/// Of columns whose values differ.
class sentences {
 public:
  sentences(const io::location& where, penstock::type stored) : where_(where), stored_(stored) {}

  void add(std::size_t column, const range& values) {
    if (!(values.most > values.least)) return;  // they are the same
    if (all_.size() < most_sentences)
      all_.push_back(sentence_of(where_, column, stored_, values));
    else
      ++more_;
  }
  std::vector<std::string> take() {
    if (more_ > 0) all_.push_back(fmt::format("and {} columns more", more_));
    return std::move(all_);
  }

 private:
  const io::location& where_;
  penstock::type stored_;
  std::vector<std::string> all_;
  std::size_t more_ = 0;
};

}  // namespace

std::vector<std::string> rounded_columns(const std::vector<io::location>& x,
                                         const penstock::train::input_statistics& statistics) {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < statistics.mean.size(); ++c)
    if (look_the_same(statistics.mean[c], statistics.deviation[c])) columns.push_back(c);
  if (columns.empty() || x.empty()) return {};
  io::row_reader reader(x);
  const penstock::type stored = reader.element().element;
  if (float32_holds(stored)) return {};
  const std::vector<range> ranges = ranges_of(reader, columns);
  sentences told(x.front(), stored);
  for (std::size_t c = 0; c < columns.size(); ++c) told.add(columns[c], ranges[c]);
  return told.take();
}

std::vector<std::string> rounded_columns(const std::vector<io::location>& values) {
  if (values.empty()) return {};
  io::row_reader reader(values);
  const penstock::type stored = reader.element().element;
  if (float32_holds(stored)) return {};
  const std::vector<column_sample> columns = sample_of(reader);
  sentences told(values.front(), stored);
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (look_the_same(columns[c].mean, columns[c].deviation())) told.add(c, columns[c].values);
  return told.take();
}

}  // namespace examples
