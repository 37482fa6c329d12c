#include "requests.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <iterator>
#include <stdexcept>

namespace penstock::python {
namespace nb = nanobind;
namespace {

field_request field_of(const nb::tuple& of) {
  const auto options = nb::cast<nb::dict>(of[3]);
  field_request field{.name = bytes_of(of[0]),
                      .places = {},
                      .as = nb::cast<std::string>(of[2]),
                      .options = {.scale = nb::cast<double>(options["scale"]),
                                  .shift = nb::cast<double>(options["shift"]),
                                  .netcdf = nb::cast<bool>(options["netcdf"]),
                                  .masked = nb::cast<double>(options["masked"]),
                                  .allow_missing_sources = nb::cast<bool>(options["allow_missing_sources"]),
                                  .around_page_cache = nb::cast<bool>(options["around_page_cache"])},
                      .row_axis = nb::cast<std::size_t>(of[4]),
                      .region = {}};
  for (const nb::handle place : nb::cast<nb::list>(of[1])) {
    const auto pair = nb::cast<nb::tuple>(place);
    field.places.emplace_back(bytes_of(pair[0]), bytes_of(pair[1]));
  }
  for (const nb::handle part : nb::cast<nb::list>(of[5])) {
    const auto range = nb::cast<nb::tuple>(part);
    field.region.push_back(
        {nb::cast<std::size_t>(range[0]), nb::cast<std::uint64_t>(range[1]), nb::cast<std::uint64_t>(range[2])});
  }
  return field;
}

pipeline::last_batch last_of(const std::string& word) {
  if (word == "keep") return pipeline::last_batch::keep;
  if (word == "drop") return pipeline::last_batch::drop;
  if (word == "pad") return pipeline::last_batch::pad;
  throw std::invalid_argument("last is 'keep', 'drop' or 'pad', not '" + word + "'");
}

std::vector<double> doubles_of(nb::handle object) {
  const auto bytes = nb::cast<nb::bytes>(object);
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.c_str(), values.size() * sizeof(double));
  return values;
}

}  // namespace

std::string bytes_of(nb::handle object) {
  const auto bytes = nb::cast<nb::bytes>(object);
  return {bytes.c_str(), bytes.size()};
}

source_request source_of(const nb::tuple& of, kept_criteria& kept) {
  source_request request{.rows = kept.emplace_back(nb::cast<nb::list>(of[1])).selection(),
                         .mixed_rows = nb::cast<std::uint64_t>(of[3])};
  for (const nb::handle field : nb::cast<nb::list>(of[0]))
    request.fields.push_back(field_of(nb::cast<nb::tuple>(field)));
  for (const nb::handle part : nb::cast<nb::list>(of[2])) {
    const auto share = nb::cast<nb::tuple>(part);
    request.parts.push_back(source_of(nb::cast<nb::tuple>(share[0]), kept));
    request.parts.back().ratio = nb::cast<double>(share[1]);
  }
  return request;
}

pipeline::order_options order_of(const nb::tuple& of) {
  const auto number = [&](std::size_t n) { return nb::cast<std::uint64_t>(of[n]); };
  const auto kind = nb::cast<std::string>(of[0]);
  if (kind == "random") return pipeline::random{.seed = number(1)};
  if (kind == "weighted")
    return pipeline::weighted{
        .seed = number(1), .field = bytes_of(of[2]), .weights = doubles_of(of[3]), .rows = number(4)};
  if (kind == "balanced")
    return pipeline::class_balanced{.seed = number(1), .field = bytes_of(of[2]), .rows = number(3)};
  if (kind == "shuffled") return pipeline::shuffled{.seed = number(1), .run_rows = number(2), .pool_rows = number(3)};
  return pipeline::sequential{};
}

loader_request request_of(const nb::tuple& source, kept_criteria& kept, const nb::list& maps, const nb::tuple& order,
                          const nb::dict& options) {
  const auto number = [&](const char* name) { return nb::cast<std::size_t>(options[name]); };
  loader_request request{
      .source = source_of(source, kept),
      .maps = row_maps(maps),
      .damaged = std::nullopt,
      .order = order_of(order),
      .shard = {.shards = number("shards"), .rank = number("rank"), .ranks = number("world_size")},
      .batches = {.rows = number("batch_size"),
                  .last = last_of(nb::cast<std::string>(options["last"])),
                  .held = number("held"),
                  .poisoned = nb::cast<bool>(options["poisoned"])},
      .transport = {.block_bytes = number("block_bytes"), .slots = number("slots"), .threads = number("threads")},
      .trace = {.bytes = number("trace")},
      .calibrate = std::nullopt,
      .device = nb::cast<std::string>(options["device"]),
      .budget = {.device_bytes = number("device_memory"),
                 .pinned_bytes = number("pinned_memory"),
                 .host_bytes = number("host_memory")}};
  if (const double seconds = nb::cast<double>(options["calibrate"]); seconds > 0)
    request.calibrate = {.seconds = seconds};
  if (const nb::object damaged = options["damaged"]; !damaged.is_none()) {  // (limit of rows, name of the mask)
    request.damaged = {.policy = pipeline::damage_policy::skip,
                       .limit_rows = nb::cast<std::uint64_t>(damaged[0]),
                       .mask = nb::cast<std::string>(damaged[1])};
  }
  return request;
}

pipeline::source make_source(const source_request& request, made_for what) {
  pipeline::source source;
  for (const field_request& field : request.fields) {
    std::vector<io::location> segments;
    for (const auto& [pattern, dataset] : field.places) {
      auto found = io::datasets(pattern, dataset);
      std::move(found.begin(), found.end(), std::back_inserter(segments));
    }
    for (io::location& segment : segments) segment.row_axis = field.row_axis, segment.region = field.region;
    pipeline::field_options options = field.options;
    if (what == made_for::shapes)
      options.scale = 1, options.shift = 0;
    else if (!field.as.empty())
      options.as = parse_type(field.as);
    source.field(field.name, std::move(segments), options);
  }
  if (!request.parts.empty()) {
    std::vector<pipeline::source_share> shares;
    for (const source_request& part : request.parts) shares.push_back({make_source(part, what), part.ratio});
    source = pipeline::mixed(std::move(shares), {.rows = request.mixed_rows});
  }
  if (request.rows && what == made_for::batches) source.select(*request.rows);
  return source;
}

}  // namespace penstock::python
