#pragma once

#include "class_table.hpp"
#include "row_supply.hpp"

#include <penstock/fault.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/order_options.hpp>
#include <penstock/pipeline/source.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::pipeline {

/// What an order needs of a source of so many rows (of a mixed one: so many in each part): the rows that take part, and
/// their weights, classes or sources. Reads the fields that are named for it. Throws std::invalid_argument where they
/// do not suit, io::error.
row_supply supply_rows(const source& from, const order_options& how, std::uint64_t rows,
                       std::span<const std::uint64_t> part_rows, const fault_seam& faults);

/// The classes of all rows, or of those that take part: rows with the same bytes in the field are of one class; classes
/// count in the order in which they come first. Throws std::invalid_argument where there are more than 2^20.
row_classes classes_of(const source& from, const std::string& field, std::string_view why, const row_set* only,
                       const fault_seam& faults);

/// Host memory that it holds.
std::vector<io::memory_item> memory_of(const row_supply& supply, const order_options& how, std::uint64_t rows);

}  // namespace penstock::pipeline
