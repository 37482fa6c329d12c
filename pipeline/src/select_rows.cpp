#include "select_rows.hpp"

#include "read_options_of.hpp"

#include <penstock/gpu/permutation.hpp>
#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr std::size_t piece_bytes = 4 << 20;  // of a field that is looked at, at once

const source::field_description& field_of(const source& from, const std::string& name) {
  for (const auto& field : from.fields())
    if (field.name == name) return field;
  throw std::invalid_argument(fmt::format("rows are selected by field '{}', which the source does not have", name));
}

/// Calls `look` with each row's number and bytes.
void look_at(const io::row_reader& reader, const std::function<void(std::uint64_t row, const std::byte*)>& look) {
  const std::size_t row_bytes = std::max<std::size_t>(reader.row_bytes(), 1);
  const std::uint64_t step = std::max<std::uint64_t>(piece_bytes / row_bytes, 1);
  std::vector<std::byte> piece(std::min<std::uint64_t>(step, reader.rows()) * reader.row_bytes());
  for (std::uint64_t first = 0; first < reader.rows(); first += step) {
    const std::uint64_t count = std::min(step, reader.rows() - first);
    reader.read(first, count, {piece.data(), count * reader.row_bytes()});
    for (std::uint64_t i = 0; i < count; ++i) look(first + i, piece.data() + i * reader.row_bytes());
  }
}

std::uint64_t mix_bytes(const std::byte* bytes, std::size_t count) {
  std::uint64_t mixed = gpu::mix(count);
  for (std::size_t done = 0; done < count; done += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + done, std::min(sizeof word, count - done));
    mixed = gpu::mix(mixed ^ word);
  }
  return mixed;
}

class chooser {
 public:
  chooser(const source& from, row_set& rows, std::uint64_t count, const fault_seam& faults)
      : from_(from), rows_(rows), count_(count), faults_(faults) {}

  void operator()(const selection::ranges_of_rows& some) const {
    for (const extent& range : some.ranges)
      if (range.first > count_ || range.count > count_ - range.first)
        throw std::invalid_argument(fmt::format("rows {} to {} are selected of a source of {} rows", range.first,
                                                range.first + range.count - (range.count > 0), count_));
    rows_.keep_only(some.ranges);
  }

  void operator()(const selection::rows_that& some) const {
    const auto& field = field_of(from_, some.field);
    io::read_options options = read_options_of(field, faults_);
    options.values.as = type::float64;
    const io::row_reader reader(field.segments, options);
    if (reader.row_bytes() != sizeof(double))
      throw std::invalid_argument(
          fmt::format("rows are selected by field '{}', which has {} numbers in a row; it needs one", some.field,
                      reader.row_bytes() / sizeof(double)));
    look_at(reader, [&](std::uint64_t row, const std::byte* bytes) {
      double value = 0;
      std::memcpy(&value, bytes, sizeof value);
      if (!some.keep(value)) rows_.remove(row);
    });
  }

  void operator()(const selection::part_of& part) const {
    // Numbers below the bound are validation; 2^64 itself does not fit, and no bound is needed then.
    const double scaled = std::ldexp(part.how.validation, 64);
    const bool all = scaled >= std::ldexp(1.0, 64);
    const std::uint64_t bound = all ? 0 : static_cast<std::uint64_t>(scaled);
    const std::uint64_t key = gpu::mix(part.how.seed);
    const auto look = [&](std::uint64_t row, std::uint64_t value) {
      const bool validation = all || gpu::mix(key ^ value) < bound;
      if (validation != part.validation) rows_.remove(row);
    };
    if (part.how.group.empty()) {
      for (std::uint64_t row = 0; row < count_; ++row) look(row, row);
      return;
    }
    const auto& field = field_of(from_, part.how.group);
    const io::row_reader reader(field.segments, read_options_of(field, faults_));
    look_at(reader,
            [&](std::uint64_t row, const std::byte* bytes) { look(row, mix_bytes(bytes, reader.row_bytes())); });
  }

 private:
  const source& from_;
  row_set& rows_;
  std::uint64_t count_;
  const fault_seam& faults_;
};

}  // namespace

std::shared_ptr<const row_set> select_rows(const source& from, std::uint64_t rows, const fault_seam& faults) {
  if (!from.selected()) return nullptr;
  auto chosen = std::make_shared<row_set>(rows);
  for (const selection::criterion& one : from.selected()->criteria())
    std::visit(chooser(from, *chosen, rows, faults), one);
  chosen->count();
  return chosen;
}

}  // namespace penstock::pipeline
