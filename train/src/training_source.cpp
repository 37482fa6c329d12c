#include "training_source.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace penstock::train {
namespace {

/// The file and dataset of a field, from its first row to its last.
std::string stored_in(const pipeline::pipeline& data, const std::string& field) {
  const auto name = [&](std::uint64_t row) {
    const auto place = data.place_of(field, row);
    return place ? fmt::format("{}:{}", std::filesystem::path(place->file).filename().string(), place->dataset)
                 : "made by a transform";
  };
  if (data.rows() == 0) return "nothing";
  const std::string first = name(0), last = name(data.rows() - 1);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

void require_stored(const pipeline::pipeline& data, const std::string& weight) {
  if (data.rows() == 0 || data.place_of(weight, 0)) return;
  std::vector<std::string> stored;
  for (const auto& field : data.plan().fields)
    if (data.place_of(field.name, 0)) stored.push_back(field.name);
  throw std::invalid_argument(
      fmt::format("stored_weight: no stored field is named \"{}\"; there are {}", weight, fmt::join(stored, ", ")));
}

/// The field that holds the rows' weights as they are stored; empty where there is none, as where all are 1, a mask of
/// damaged rows, or made by a transform alone.
std::string stored_weight(const pipeline::pipeline& data, const trainer_options& options) {
  if (!options.stored_weight.empty()) {
    require_stored(data, options.stored_weight);
    return options.stored_weight;
  }
  const bool stored = !options.weight.empty() && options.weight != data.plan().damage_mask && data.rows() > 0 &&
                      data.place_of(options.weight, 0);
  return stored ? options.weight : "";
}

}  // namespace

std::string source_of(const pipeline::pipeline& data, const trainer_options& options, bool all_fields) {
  std::vector<std::string> places;
  if (all_fields) {
    for (const auto& field : data.plan().fields) places.push_back(stored_in(data, field.name));
  } else {
    places = {stored_in(data, options.x), stored_in(data, options.label)};
    if (!options.x2.empty()) places.insert(places.begin() + 1, stored_in(data, options.x2));
    if (const std::string weight = stored_weight(data, options); !weight.empty())
      places.push_back(stored_in(data, weight));
  }
  // It is kept in checkpoints as JSON, and names of files and datasets may be any bytes.
  return as_utf8(
      fmt::format("{} rows of {}, {}", data.rows(), fmt::join(places, " with "), data.row_order().description()));
}

}  // namespace penstock::train
