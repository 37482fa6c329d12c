#include "training_source.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace penstock::train {
namespace {

/// The file and dataset of a field, from its first row to its last. Where rows are drawn, an epoch may have more of
/// them than the source, and no row is the last.
std::string stored_in(const pipeline::pipeline& data, const std::string& field) {
  const auto name = [&](std::uint64_t row) {
    const auto place = data.place_of(field, row);
    return place ? fmt::format("{}:{}", std::filesystem::path(place->file).filename().string(), place->dataset)
                 : "made by a transform";
  };
  if (data.rows() == 0) return "nothing";
  const std::string first = name(0), last = data.row_order().repeats() ? first : name(data.rows() - 1);
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

/// Numbers that tell apart what words do not: the files in the middle and which parts of them are read, which rows take
/// part, and what they are drawn by. Batches may differ. What a transform makes may be made of any field.
std::string fingerprints(const pipeline::pipeline& data, std::vector<std::string> fields) {
  const nlohmann::json state = nlohmann::json::parse(data.state({}));
  std::vector<std::string> prints;
  const auto add = [&](const std::string& name, const nlohmann::json& among, const std::string& key) {
    if (among.contains(key)) prints.push_back(fmt::format("{} {}", name, among.at(key).get<std::string>()));
  };
  const nlohmann::json& stored = state.at("fields");
  const bool all = std::any_of(fields.begin(), fields.end(),
                               [&](const std::string& field) { return !stored.contains(as_utf8(field)); });
  if (all || fields.empty()) {
    fields.clear();
    for (const auto& [field, print] : stored.items()) fields.push_back(field);
  }
  for (const std::string& field : fields) add(field, stored, as_utf8(field));
  add("rows that take part", state, "selected");
  add("what they are drawn by", state, "drawn_by");
  return fmt::format("{}", fmt::join(prints, ", "));
}

}  // namespace

std::string source_of(const pipeline::pipeline& data, const trainer_options& options, bool all_fields) {
  std::vector<std::string> fields;
  if (!all_fields) {
    fields = {options.x, options.label};
    if (!options.x2.empty()) fields.insert(fields.begin() + 1, options.x2);
    if (const std::string weight = stored_weight(data, options); !weight.empty()) fields.push_back(weight);
  }
  std::vector<std::string> places;
  for (const std::string& field : fields) places.push_back(stored_in(data, field));
  if (all_fields)
    for (const auto& field : data.plan().fields) places.push_back(stored_in(data, field.name));
  // It is kept in checkpoints as JSON, and names of files and datasets may be any bytes.
  return as_utf8(fmt::format("{} rows of {}, {} (fingerprints: {})", data.rows(), fmt::join(places, " with "),
                             data.row_order().description(), fingerprints(data, std::move(fields))));
}

}  // namespace penstock::train
