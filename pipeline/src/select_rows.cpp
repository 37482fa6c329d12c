#include "select_rows.hpp"

#include "field_scan.hpp"
#include "group_key.hpp"
#include "read_options_of.hpp"
#include "take_host_memory.hpp"

#include <penstock/gpu/permutation.hpp>
#include <penstock/pipeline/mixed.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr std::string_view why = "rows are selected by";

/// For people: its last row, also where that is beyond 64 bits.
std::uint64_t last_of(const extent& range) {
  const std::uint64_t more = std::max<std::uint64_t>(range.count, 1) - 1;
  return range.first + std::min(more, std::numeric_limits<std::uint64_t>::max() - range.first);
}

class chooser {
 public:
  chooser(const source& from, row_set& rows, std::uint64_t count, const fault_seam& faults)
      : from_(from), rows_(rows), count_(count), faults_(faults) {}

  void operator()(const selection::ranges_of_rows& some) const {
    if (some.of_rows && *some.of_rows != count_)
      throw std::invalid_argument(
          fmt::format("{} a mask of {} rows, and the source has {}", why, *some.of_rows, count_));
    for (const extent& range : some.ranges)
      if (range.first > count_ || range.count > count_ - range.first)
        throw std::invalid_argument(
            fmt::format("rows {} to {} are selected of a source of {} rows", range.first, last_of(range), count_));
    rows_.keep_only(some.ranges);
  }

  void operator()(const selection::rows_that& some) const {
    look_at_numbers(field_of(from_, some.field, why), faults_, why, [&](std::uint64_t row, double value) {
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
    const auto& field = field_of(from_, part.how.group, why);
    const io::row_reader reader(field.segments, read_options_of(field, faults_));
    group_key key_of(reader);
    look_at(reader, [&](std::uint64_t row, const std::byte* bytes) { look(row, key_of(bytes)); });
  }

 private:
  const source& from_;
  row_set& rows_;
  std::uint64_t count_;
  const fault_seam& faults_;
};

void choose(const source& from, row_set& rows, std::uint64_t count, const fault_seam& faults) {
  if (!from.selected()) return;
  for (const selection::criterion& one : from.selected()->criteria())
    std::visit(chooser(from, rows, count, faults), one);
}

bool chooses(const source& from) {
  if (from.selected()) return true;
  const auto selected = [](const source_share& part) { return part.from.selected().has_value(); };
  return from.mix() && std::any_of(from.mix()->parts.begin(), from.mix()->parts.end(), selected);
}

}  // namespace

std::shared_ptr<const row_set> select_rows(const source& from, std::uint64_t rows,
                                           std::span<const std::uint64_t> part_rows, const fault_seam& faults) {
  if (!chooses(from)) return nullptr;
  const auto chosen = take_host_memory(faults, memory_items::chosen, row_set::bytes_for(rows),
                                       [rows] { return std::make_shared<row_set>(rows); });
  choose(from, *chosen, rows, faults);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < part_rows.size(); first += part_rows[i], ++i) {
    const source& part = from.mix()->parts[i].from;
    if (!part.selected()) continue;
    row_set of_part(part_rows[i]);
    try {
      choose(part, of_part, part_rows[i], faults);
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("source {} of a mix: {}", i + 1, e.what()));
    }
    for (std::uint64_t row = 0; row < part_rows[i]; ++row)
      if (!of_part.contains(row)) chosen->remove(first + row);
  }
  chosen->count();
  return chosen;
}

}  // namespace penstock::pipeline
