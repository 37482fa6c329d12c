// The extension module penstock._core: what the Python files beside it stand on. Paths and names come as bytes.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <penstock/config.hpp>

#include <cstring>
#include <string>
#include <utility>

#include "batch_handle.hpp"
#include "describe.hpp"
#include "errors.hpp"
#include "row_criteria.hpp"
#include "row_maps.hpp"
#include "stream_loader.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

std::string bytes_of(nb::handle object) {
  const auto bytes = nb::cast<nb::bytes>(object);
  return {bytes.c_str(), bytes.size()};
}

/// (name, [(file or pattern, dataset), ...], type or "", options, row axis, [(axis, first, count), ...])
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

/// ("sequential",), ("shuffled", seed, run_rows, pool_rows), ("random", seed), ("weighted", seed, field, weights as
/// bytes of float64, rows) or ("balanced", seed, field, rows)
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

loader_request request_of(const nb::list& fields, row_criteria& rows, const nb::list& maps, const nb::tuple& order,
                          const nb::dict& options) {
  const auto number = [&](const char* name) { return nb::cast<std::size_t>(options[name]); };
  loader_request request{.fields = {},
                         .rows = rows.selection(),
                         .maps = row_maps(maps),
                         .damaged = std::nullopt,
                         .order = order_of(order),
                         .shard = {.shards = number("shards"), .rank = number("rank"), .ranks = number("world_size")},
                         .batches = {.rows = number("batch_size"),
                                     .last = last_of(nb::cast<std::string>(options["last"])),
                                     .held = number("held"),
                                     .poisoned = nb::cast<bool>(options["poisoned"])},
                         .transport = {.block_bytes = number("block_bytes"), .threads = number("threads")},
                         .device = nb::cast<std::string>(options["device"]),
                         .budget = {.device_bytes = number("device_memory"),
                                    .pinned_bytes = number("pinned_memory"),
                                    .host_bytes = number("host_memory")}};
  if (const nb::object damaged = options["damaged"]; !damaged.is_none()) {  // (limit of rows, name of the mask)
    request.damaged = {.policy = pipeline::damage_policy::skip,
                       .limit_rows = nb::cast<std::uint64_t>(damaged[0]),
                       .mask = nb::cast<std::string>(damaged[1])};
  }
  for (const nb::handle field : fields) request.fields.push_back(field_of(nb::cast<nb::tuple>(field)));
  return request;
}

nb::object place_of(const stream_loader& loader, const std::string& field, std::uint64_t row) {
  const auto place = loader.built().place_of(field, row);
  if (!place) throw std::invalid_argument("the source has no field '" + field + "'");
  return nb::make_tuple(name(place->file), name(place->dataset), place->row);
}

/// `seconds`: of the loops, measured by who ran them.
nb::dict report_of(const stream_loader& loader, double seconds) {
  auto report = loader.report();
  report.seconds = seconds;
  return describe(report);
}

}  // namespace

void bind_loader(nb::module_& m) {
  nb::class_<stream_loader>(m, "StreamLoader")
      .def(
          "__init__",
          [](stream_loader* self, const nb::list& fields, const nb::list& rows, const nb::list& maps,
             const nb::tuple& order, const nb::dict& options) {
            row_criteria criteria(rows);
            new (self) stream_loader(request_of(fields, criteria, maps, order, options));
          },
          nb::arg("fields"), nb::arg("rows"), nb::arg("maps"), nb::arg("order"), nb::arg("options"))
      .def("refuse_child", &stream_loader::refuse_child)
      .def("begin", &stream_loader::begin, nb::arg("epoch"), nb::arg("batch"), nb::arg("stream").none())
      .def("next", &stream_loader::next)
      .def("close", &stream_loader::close)
      .def("plan", [](const stream_loader& l) { return describe(l.built().plan(), l.budget()); })
      .def("report", &report_of, nb::arg("seconds"))
      .def("place_of", &place_of, nb::arg("field"), nb::arg("row"))
      .def("state", &stream_loader::state, nb::arg("epoch"), nb::arg("batch"))
      .def("resume_at", &stream_loader::resume_at, nb::arg("state"))
      .def_prop_ro("batches", [](const stream_loader& l) { return l.built().batches_per_epoch(); });
}

}  // namespace penstock::python

NB_MODULE(_core, m) {
  using namespace penstock::python;
  nanobind::set_leak_warnings(false);  // loaders may live until the interpreter's end
  m.attr("has_cuda") = PENSTOCK_HAS_CUDA != 0;
  bind_errors(m);
  bind_batch(m);
  bind_loader(m);
  m.def(
      "inspect",
      [](const nanobind::bytes& file) {
        return inspect({file.c_str(), file.size()});
      },
      nanobind::arg("file"));
}
