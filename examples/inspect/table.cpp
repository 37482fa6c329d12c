#include "table.hpp"

#include <penstock/bytes.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace examples {
namespace io = penstock::io;
namespace {

using line = std::array<std::string, 10>;

double product(const std::vector<std::uint64_t>& extents, std::size_t from) {
  double all = 1;
  for (std::size_t k = from; k < extents.size(); ++k) all *= static_cast<double>(extents[k]);
  return all;
}

/// As one word of a shell's command line.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : printable(text)) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string filters_text(const io::dataset_info& d) {
  std::vector<std::string> names;
  for (const auto& f : d.filters)
    names.push_back(f.name == "deflate" && !f.values.empty() ? fmt::format("deflate {}", f.values[0])
                                                             : printable(f.name));
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, " + "));
}

std::string ratio_text(const io::dataset_info& d) {
  if (!d.element || d.stored_bytes == 0) return "-";
  const double value_bytes = static_cast<double>(penstock::size_of(d.element->element) * d.element->per_value);
  return fmt::format("{:.2f}", product(d.shape, 0) * value_bytes / static_cast<double>(d.stored_bytes));
}

line line_of(const io::dataset_info& d) {
  const bool opened = d.type_text != "unreadable";
  return {printable(d.path),
          d.shape.empty() ? "-" : fmt::format("{}", fmt::join(d.shape, " x ")),
          printable(d.type_text),
          opened ? std::string(name_of(d.layout)) : "-",
          d.chunk_shape.empty() ? "-" : fmt::format("{}", fmt::join(d.chunk_shape, " x ")),
          filters_text(d),
          opened ? penstock::format_bytes(d.stored_bytes) : "-",
          ratio_text(d),
          cost_of_row(d) ? fmt::format("{:.3g}", *cost_of_row(d)) : "-",
          d.unreadable.empty() ? fmt::format("{}: {}", name_of(d.access), d.reason)
                               : "not read: " + printable(d.unreadable)};
}

/// Chunks that one row touches.
double chunks_of_row(const io::dataset_info& d) {
  double chunks = 1;
  for (std::size_t k = 1; k < d.chunk_shape.size(); ++k)
    chunks *= static_cast<double>(d.shape[k] / d.chunk_shape[k] + (d.shape[k] % d.chunk_shape[k] != 0));
  return chunks;
}

}  // namespace

std::string printable(std::string text) {
  for (char& c : text)
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  return text;
}

std::optional<double> cost_of_row(const io::dataset_info& d) {
  if (!d.element || d.layout == io::layout::virtual_dataset) return std::nullopt;
  if (d.chunk_shape.empty() || d.filters.empty() || d.shape.empty()) return 1;
  double touched = static_cast<double>(d.chunk_shape[0]);
  for (std::size_t k = 1; k < d.shape.size(); ++k) {
    const auto chunks = d.shape[k] / d.chunk_shape[k] + (d.shape[k] % d.chunk_shape[k] != 0);
    touched *= static_cast<double>(chunks) * static_cast<double>(d.chunk_shape[k]);
  }
  const double row = product(d.shape, 1);
  return row > 0 ? touched / row : 1;
}

std::string advice(const io::dataset_info& d, const std::string& file) {
  if (!d.element || d.chunk_shape.empty() || d.shape.empty() || product(d.shape, 0) == 0) return {};
  const double value_bytes = static_cast<double>(penstock::size_of(d.element->element) * d.element->per_value);
  const double row_bytes = product(d.shape, 1) * value_bytes;
  const double chunk = product(d.chunk_shape, 0) * value_bytes;
  const double all = product(d.shape, 0) * value_bytes;
  constexpr double mebibyte = 1 << 20;
  const bool small = chunk < mebibyte / 64 && all > 16 * mebibyte;
  const double decoded = *cost_of_row(d) * row_bytes;
  const bool costly = decoded > 8 * mebibyte;
  const double piece = product(d.chunk_shape, 1) * value_bytes;
  const bool scattered = chunks_of_row(d) >= 16 && piece < 1024 && all > 16 * mebibyte;
  if (!small && !costly && !scattered) return {};
  const auto bytes = [](double b) { return penstock::format_bytes(static_cast<std::size_t>(b)); };
  const auto why = costly  ? fmt::format("one row costs {} of decoded chunks", bytes(decoded))
                   : small ? fmt::format("its chunks hold {} each", bytes(chunk))
                           : fmt::format("one row lies in {} chunks, {} in each", chunks_of_row(d), bytes(piece));

  auto better = d.shape;
  better[0] = static_cast<std::uint64_t>(std::clamp(mebibyte / row_bytes, 1.0, static_cast<double>(d.shape[0])));
  const auto says = fmt::format("{}: {}; chunks of whole rows read faster:", printable(d.path), why);
  // h5repack takes lists of names, parted by commas.
  if (d.path.find(',') != std::string::npos || printable(d.path) != d.path)
    return fmt::format("{}\n  write it anew with chunks of {}: h5repack has no way to name it", says,
                       fmt::join(better, " x "));
  return fmt::format("{}\n  h5repack -l {} {} OUT.h5", says,
                     shell_quoted(fmt::format("{}:CHUNK={}", d.path, fmt::join(better, "x"))), shell_quoted(file));
}

std::string table(const std::vector<io::dataset_info>& datasets, const std::string& file) {
  std::vector<line> lines{
      {"dataset", "shape", "type", "layout", "chunks", "filters", "stored", "ratio", "row cost", "plan: why"}};
  for (const auto& d : datasets) lines.push_back(line_of(d));
  std::array<std::size_t, std::tuple_size_v<line>> width{};
  for (const auto& l : lines)
    for (std::size_t c = 0; c < l.size(); ++c) width[c] = std::max(width[c], std::min<std::size_t>(l[c].size(), 48));
  std::string text;
  for (const auto& l : lines) {
    for (std::size_t c = 0; c + 1 < l.size(); ++c) text += fmt::format("{:<{}}  ", l[c], width[c]);
    text += l.back() + '\n';
  }
  for (const auto& d : datasets)
    if (!d.missing_sources.empty())
      text += fmt::format("\n{}: sources that are missing: {}\n", printable(d.path),
                          printable(fmt::format("{}", fmt::join(d.missing_sources, ", "))));
  for (const auto& d : datasets)
    if (const auto hint = advice(d, file); !hint.empty()) text += "\n" + hint + '\n';
  return text;
}

}  // namespace examples
