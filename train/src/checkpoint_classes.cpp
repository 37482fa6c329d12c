#include "checkpoint_classes.hpp"

#include "checkpoint_items.hpp"
#include "checkpoint_text.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <span>

namespace penstock::train {

using nlohmann::json;

namespace {

// The names one behind the other, and where each of them ends.
constexpr const char* names_path = "/classes/names";
constexpr const char* ends_path = "/classes/name_ends";
constexpr const char* weights_path = "/classes/weights";

std::vector<std::uint64_t> ends_of(const std::vector<std::string>& names) {
  std::vector<std::uint64_t> ends;
  for (const std::string& name : names) ends.push_back((ends.empty() ? 0 : ends.back()) + name.size());
  return ends;
}

/// As many values as the file says that an array has. None of them has more than its file.
template <class Values>
Values array_in(const std::filesystem::path& file, const char* path, type element, std::uint64_t count,
                const json& sums) {
  Values values;
  if (const std::uint64_t most = std::filesystem::file_size(file) / size_of(element); count > most)
    refuse(file, fmt::format("{} has {} values, and the whole file has room for {}", path, count, most));
  values.resize(count);
  if (count > 0) read_array(file, path, element, std::as_writable_bytes(std::span(values)), sums);
  return values;
}

}  // namespace

class_arrays classes_of(const std::string& own_model, const trainer_options& options) {
  class_arrays classes;
  for (const std::string& name : options.class_names) classes.names.push_back(as_utf8(name));
  if (own_model.empty()) classes.weights = options.stage.class_weights;
  return classes;
}

json to_json(const class_arrays& classes) {
  const std::vector<std::uint64_t> ends = ends_of(classes.names);
  return {
      {"names", ends.size()}, {"bytes_of_names", ends.empty() ? 0 : ends.back()}, {"weights", classes.weights.size()}};
}

void write_classes(io::writer& to, const class_arrays& classes, json& sums) {
  if (!classes.names.empty()) {
    const std::vector<std::uint64_t> ends = ends_of(classes.names);
    std::string all;
    for (const std::string& name : classes.names) all += name;
    if (!all.empty()) write_array(to, names_path, type::uint8, std::as_bytes(std::span(all)), sums);
    write_array(to, ends_path, type::uint64, std::as_bytes(std::span(ends)), sums);
  }
  if (!classes.weights.empty())
    write_array(to, weights_path, type::float64, std::as_bytes(std::span(classes.weights)), sums);
}

std::vector<std::string> class_names_in(const std::filesystem::path& file, const json& there) {
  if (!there.contains("classes")) return there.at("class_names");
  const json &counts = there.at("classes"), &sums = there.at("checksums");
  const auto all = array_in<std::string>(file, names_path, type::uint8, count_of(counts.at("bytes_of_names")), sums);
  const auto ends =
      array_in<std::vector<std::uint64_t>>(file, ends_path, type::uint64, count_of(counts.at("names")), sums);
  std::vector<std::string> names;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : ends) {
    if (end < begin || end > all.size())
      refuse(file, fmt::format("the name of a class goes from byte {} to {} of {}", begin, end, all.size()));
    names.push_back(all.substr(begin, end - begin));
    begin = end;
  }
  return names;
}

std::vector<double> class_weights_in(const std::filesystem::path& file, const json& there) {
  if (!there.contains("classes")) return there.at("identity").value("class weights", std::vector<double>{});
  return array_in<std::vector<double>>(file, weights_path, type::float64, count_of(there.at("classes").at("weights")),
                                       there.at("checksums"));
}

}  // namespace penstock::train
