#include "supply_rows.hpp"

#include "field_scan.hpp"
#include "mixed_rows.hpp"
#include "read_options_of.hpp"
#include "select_rows.hpp"
#include "take_host_memory.hpp"
#include "weight_table.hpp"

#include <penstock/pipeline/mixed.hpp>

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <unordered_map>

namespace penstock::pipeline {
namespace {

constexpr std::uint32_t most_classes = std::uint32_t{1} << 20;

/// Collects the weights of the rows that take part.
class weigher {
 public:
  weigher(const row_set* only, std::uint64_t rows, const fault_seam& faults)
      : only_(only), table_(table_for(only ? only->size() : rows, faults)) {}

  void operator()(std::uint64_t row, double weight) {
    if (only_ && !only_->contains(row)) return;
    if (!std::isfinite(weight) || weight < 0)
      throw std::invalid_argument(fmt::format(
          "row {} has the weight {}; weights that rows are drawn by are finite and not negative", row, weight));
    table_->add(weight);
  }
  std::shared_ptr<const weight_table> finished() {
    table_->finish();
    return table_;
  }

 private:
  static std::shared_ptr<weight_table> table_for(std::uint64_t rows, const fault_seam& faults) {
    return take_host_memory(faults, memory_items::weights, weight_table::bytes_for(rows),
                            [rows] { return std::make_shared<weight_table>(rows); });
  }

  const row_set* only_;
  std::shared_ptr<weight_table> table_;
};

std::shared_ptr<const weight_table> weights_of(const source& from, const weighted& how, std::uint64_t rows,
                                               const row_set* only, const fault_seam& faults) {
  if (how.field.empty() == how.weights.empty())
    throw std::invalid_argument("a weighted order needs either the field that holds the weights, or a list of them");
  weigher each(only, rows, faults);
  if (!how.field.empty()) {
    constexpr std::string_view why = "rows are drawn by the weight in";
    look_at_numbers(field_of(from, how.field, why), faults, why, std::ref(each));
    return each.finished();
  }
  if (how.weights.size() != rows)
    throw std::invalid_argument(
        fmt::format("{} weights are given for a source of {} rows; it needs one for each", how.weights.size(), rows));
  for (std::uint64_t row = 0; row < rows; ++row) each(row, how.weights[row]);
  return each.finished();
}

std::shared_ptr<const mix_table> sources_of(const mixture& mix, std::span<const std::uint64_t> part_rows,
                                            const row_set* only) {
  auto table = std::make_shared<mix_table>();
  const auto place = [&](std::uint64_t row) { return only ? only->chosen_before(row) : row; };
  std::uint64_t first = 0, all = 0;
  for (std::size_t i = 0; i < part_rows.size(); ++i) {
    const std::uint64_t begin = place(first), rows = place(first + part_rows[i]) - begin;
    if (rows == 0)
      throw std::invalid_argument(fmt::format("source {} of a mix has no row that takes part; leave it out", i + 1));
    table->parts.push_back({begin, rows, mix.parts[i].ratio});
    first += part_rows[i], all += rows;
  }
  table->rows = mix.how.rows ? mix.how.rows : all;
  return table;
}

std::shared_ptr<const class_table> table_of(const source& from, const class_balanced& how, const row_set* only,
                                            const fault_seam& faults) {
  const row_classes known = classes_of(from, how.field, "rows are balanced by", only, faults);
  return take_host_memory(faults, memory_items::classes, class_table::bytes_for(known),
                          [&] { return std::make_shared<class_table>(known); });
}

}  // namespace

row_classes classes_of(const source& from, const std::string& field, std::string_view why, const row_set* only,
                       const fault_seam& faults) {
  const auto& described = field_of(from, field, why);
  const io::row_reader reader(described.segments, read_options_of(described, faults));
  row_classes known;
  known.of_row.reserve(only ? only->size() : reader.rows());
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  look_at(reader, [&](std::uint64_t row, const std::byte* bytes) {
    if (only && !only->contains(row)) return;
    const auto [found, added] = numbers.try_emplace(mix_bytes(bytes, reader.row_bytes()), known.classes);
    if (added && ++known.classes > most_classes)
      throw std::invalid_argument(fmt::format("{} field '{}', which has more than {} different values; is it a label?",
                                              why, field, most_classes));
    known.of_row.push_back(found->second);
  });
  return known;
}

row_supply supply_rows(const source& from, const order_options& how, std::uint64_t rows,
                       std::span<const std::uint64_t> part_rows, const fault_seam& faults) {
  row_supply supply{.only = select_rows(from, rows, part_rows, faults)};
  const row_set* only = supply.only.get();
  if (from.mix()) supply.mix = sources_of(*from.mix(), part_rows, only);
  if (const auto* weights = std::get_if<weighted>(&how))
    supply.weights = weights_of(from, *weights, rows, only, faults);
  else if (const auto* classes = std::get_if<class_balanced>(&how))
    supply.classes = table_of(from, *classes, only, faults);
  return supply;
}

std::vector<io::memory_item> memory_of(const row_supply& supply, const order_options& how, std::uint64_t rows) {
  std::vector<io::memory_item> items;
  if (supply.only) items.push_back({memory_items::chosen, row_set::bytes_for(rows)});
  if (supply.weights) {
    const std::size_t given = std::get<weighted>(how).weights.size() * sizeof(double);
    items.push_back({memory_items::weights, weight_table::bytes_for(supply.weights->rows()) + given});
  }
  if (supply.classes) items.push_back({memory_items::classes, supply.classes->bytes()});
  return items;
}

}  // namespace penstock::pipeline
