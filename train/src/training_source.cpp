#include "training_source.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
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

/// Where the rows' weights are stored: in the field that is named, or, where that is a mask of damaged rows, in one
/// beside inputs and targets, which a transform has multiplied into it.
std::vector<std::string> stored_weights(const pipeline::pipeline& data, const trainer_options& options) {
  const std::string& mask = data.plan().damage_mask;
  const bool named = !options.weight.empty() && options.weight != mask;
  std::vector<std::string> places;
  if (data.rows() == 0) return places;
  for (const auto& field : data.plan().fields) {
    const std::string& name = field.name;
    if (name == options.x || name == options.x2 || name == options.label) continue;
    if (named ? name == options.weight : !mask.empty() && name != mask && data.place_of(name, 0))
      places.push_back(stored_in(data, name));
  }
  return places;
}

}  // namespace

std::string source_of(const pipeline::pipeline& data, const trainer_options& options, bool all_fields) {
  std::vector<std::string> places;
  if (all_fields) {
    for (const auto& field : data.plan().fields) places.push_back(stored_in(data, field.name));
  } else {
    places = {stored_in(data, options.x), stored_in(data, options.label)};
    if (!options.x2.empty()) places.insert(places.begin() + 1, stored_in(data, options.x2));
    const auto weights = stored_weights(data, options);
    places.insert(places.end(), weights.begin(), weights.end());
  }
  // It is kept in checkpoints as JSON, and names of files and datasets may be any bytes.
  return as_utf8(
      fmt::format("{} rows of {}, {}", data.rows(), fmt::join(places, " with "), data.row_order().description()));
}

}  // namespace penstock::train
