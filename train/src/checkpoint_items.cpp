#include "checkpoint_items.hpp"

#include <penstock/checksum.hpp>
#include <penstock/foreign_json.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace penstock::train {

using nlohmann::json;

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

std::size_t row_bytes(const state_item& item) {
  std::size_t bytes = size_of(item.element);
  for (std::size_t axis = 1; axis < item.shape.size(); ++axis) bytes *= item.shape[axis];
  return bytes;
}

/// Calls f(first_row, rows) for pieces of about piece_bytes.
template <class F>
void for_each_piece(const state_item& item, F f) {
  const std::uint64_t most = std::max<std::uint64_t>(1, piece_bytes / row_bytes(item));
  for (std::uint64_t first = 0; first < item.shape[0]; first += most) f(first, std::min(most, item.shape[0] - first));
}

std::string to_text(const checksum& sum) { return fmt::format("{:016x}", sum.value()); }

io::row_reader open_item(const std::filesystem::path& file, const std::string& path, type element,
                         const std::vector<std::uint64_t>& shape) {
  io::row_reader reader({{file, path}});
  std::vector<std::uint64_t> there{reader.rows()};
  there.insert(there.end(), reader.row_shape().begin(), reader.row_shape().end());
  if (there != shape || reader.element().element != element || reader.element().swapped)
    refuse(file,
           fmt::format("{} is {} of shape {}; this model's is {} of shape {}", path, name_of(reader.element().element),
                       fmt::join(there, " x "), name_of(element), fmt::join(shape, " x ")));
  reader.reserve({});
  return reader;
}

std::vector<double> read_doubles(const std::filesystem::path& file, const char* path, std::size_t count,
                                 const json& sums) {
  std::vector<double> values(count);
  read_array(file, path, type::float64, std::as_writable_bytes(std::span(values)), sums);
  return values;
}

/// Calls f(offset, bytes) for the pieces of an item.
template <class F>
void read_pieces(const io::row_reader& from, const state_item& item, F f) {
  std::vector<std::byte> piece;
  const std::size_t bytes = row_bytes(item);
  for_each_piece(item, [&](std::uint64_t first, std::uint64_t rows) {
    piece.resize(rows * bytes);
    from.read(first, rows, piece);
    f(first * bytes, piece);
  });
}

}  // namespace

void refuse(const std::filesystem::path& file, const std::string& sentence) {
  throw error(fmt::format("{}: {}", file.string(), sentence), {.file = file.string()});
}

std::string checksum_of(std::span<const std::byte> bytes) {
  checksum sum;
  sum.add(bytes);
  return to_text(sum);
}

void check_sum(const std::filesystem::path& file, const std::string& what, const std::string& found,
               const std::string& written) {
  if (found != written)
    refuse(file, fmt::format("{} is damaged (its checksum is {}, and was {} when it was written); take another "
                             "checkpoint",
                             what, found, in_short(written)));
}

void write_array(io::writer& to, const std::string& path, type element, std::span<const std::byte> values, json& sums) {
  const std::uint64_t count = values.size() / size_of(element);
  to.create(path, element, {count});
  to.write_rows(path, 0, count, values);
  sums[path] = checksum_of(values);
}

void read_array(const std::filesystem::path& file, const std::string& path, type element, std::span<std::byte> values,
                const json& sums) {
  const std::uint64_t count = values.size() / size_of(element);
  open_item(file, path, element, {count}).read(0, count, values);
  check_sum(file, path, checksum_of(values), sums.at(path));
}

json write_items(io::writer& to, learner& from, bool with_gradients) {
  std::vector<std::byte> piece;
  json sums;
  std::vector<state_item> items = from.state();
  if (with_gradients) items.insert(items.end(), from.gradients().begin(), from.gradients().end());
  for (const state_item& item : items) {
    checksum sum;
    to.create(item.path, item.element, item.shape);
    const std::size_t bytes = row_bytes(item);
    for_each_piece(item, [&](std::uint64_t first, std::uint64_t rows) {
      piece.resize(rows * bytes);
      from.read_state(item, first * bytes, piece.data(), piece.size());
      to.write_rows(item.path, first, rows, piece);
      sum.add(piece);
    });
    sums[item.path] = to_text(sum);
  }
  const input_statistics statistics = from.normalisation();
  for (const auto& [path, values] : {std::pair{"/normalisation/mean", &statistics.mean},
                                     std::pair{"/normalisation/deviation", &statistics.deviation}})
    if (!values->empty()) write_array(to, path, type::float64, std::as_bytes(std::span(*values)), sums);
  return sums;
}

input_statistics read_items(const std::filesystem::path& file, const json& there, const std::vector<state_item>& items,
                            std::size_t inputs, const item_writer& write) {
  const json& sums = there.at("checksums");
  // One at a time: each holds a file open, and a model may have more arrays than a process may have descriptors.
  const auto read_item = [&](const state_item& item, const auto& take) {
    const io::row_reader from = open_item(file, item.path, item.element, item.shape);
    checksum sum;
    read_pieces(from, item, [&](std::size_t offset, const std::vector<std::byte>& piece) {
      sum.add(piece);
      take(offset, piece);
    });
    check_sum(file, item.path, to_text(sum), sums.at(item.path));
  };
  for (const state_item& item : items) read_item(item, [](std::size_t, const std::vector<std::byte>&) {});
  input_statistics statistics;
  if (inputs != 0)  // a model of the user's takes its inputs as they are
    statistics = {read_doubles(file, "/normalisation/mean", inputs, sums),
                  read_doubles(file, "/normalisation/deviation", inputs, sums)};
  for (const state_item& item : items)
    read_item(item, [&](std::size_t offset, const std::vector<std::byte>& piece) {
      write(item, offset, piece.data(), piece.size());
    });
  return statistics;
}

}  // namespace penstock::train
