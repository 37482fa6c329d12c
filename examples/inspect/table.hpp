#pragma once

#include <penstock/io/dataset_info.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// Decoded bytes that must be touched to give one row, over the bytes of the row: 1 is the best there is. Nothing for
/// virtual datasets, whose sources say it, and for those without elements.
std::optional<double> cost_of_row(const penstock::io::dataset_info& d);

/// What would make the dataset faster to read row by row, with the command; empty where nothing is amiss.
std::string advice(const penstock::io::dataset_info& d, const std::string& file);

/// The datasets as a table for people, advice below it.
std::string table(const std::vector<penstock::io::dataset_info>& datasets, const std::string& file);

/// Names come from the file: what would move the terminal's cursor is shown as a question mark.
std::string printable(std::string text);

}  // namespace examples
