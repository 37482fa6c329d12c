// The extension module penstock._core: what the Python files beside it stand on.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <penstock/config.hpp>

#include <string>
#include <utility>

#include "at_work.hpp"
#include "batch_handle.hpp"
#include "describe.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "requests.hpp"
#include "stream_loader.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

/// What an order costs of a source, before it runs; how well its batches mix the classes of a field, where one is
/// named.
nb::dict price_of(const nb::tuple& source, const nb::tuple& order, std::size_t batch_rows, const nb::bytes& classes) {
  const at_work counted(at_work::with::a_call);
  kept_criteria kept;
  const source_request request = source_of(source, kept);
  const pipeline::order_options how = order_of(order);
  const std::string field = bytes_of(classes);
  const auto price = [&] {
    const without_gil unlocked;
    return (pipeline::read(make_source(request), how) | pipeline::batch_options{.rows = batch_rows})
        .open()
        .price(field);
  }();
  return describe(price);
}

nb::tuple place_of(const stream_loader& loader, const std::string& field, std::uint64_t row) {
  const auto place = loader.look_at([&](const pipeline::pipeline& pipe) { return pipe.place_of(field, row); });
  if (!place) throw std::invalid_argument("the source has no field '" + field + "'");
  return nb::make_tuple(name(place->file), name(place->dataset), place->row);
}

nb::list class_names_of(const stream_loader& loader, const std::string& field) {
  nb::list all;
  for (const std::string& text :
       loader.look_at([&](const pipeline::pipeline& pipe) { return pipe.class_names(field); }))
    all.append(name(text));
  return all;
}

/// Functions of map() may refer to the loader that calls them: the garbage collector sees such rings.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<stream_loader>(self)->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<stream_loader>(self)->clear();
  return 0;
}

PyType_Slot collected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

void bind_loader(nb::module_& m) {
  nb::class_<stream_loader>(m, "StreamLoader", nb::type_slots(collected))
      .def(
          "__init__",
          [](stream_loader* self, const nb::tuple& source, const nb::list& maps, const nb::tuple& order,
             const nb::dict& options) {
            kept_criteria kept;
            new (self) stream_loader(request_of(source, kept, maps, order, options), kept);
          },
          nb::arg("source"), nb::arg("maps"), nb::arg("order"), nb::arg("options"))
      .def("refuse_caller", &stream_loader::refuse_caller)
      .def("begin", &stream_loader::begin, nb::arg("epoch"), nb::arg("batch"), nb::arg("stream").none(),
           nb::arg("epochs").none())
      .def("next", &stream_loader::next, nb::arg("epoch"), nb::arg("index"), nb::arg("asked"))
      .def("pause", &stream_loader::pause)
      .def("close", &stream_loader::close)
      .def("plan",
           [](const stream_loader& l) {
             nb::dict d = describe(l.plan(), l.budget());
             d["calibration"] = l.measured() ? nb::object(describe(*l.measured())) : nb::none();
             return d;
           })
      .def(
          "report",
          [](const stream_loader& l, std::optional<double> link, std::optional<double> storage) {
            return describe(l.report({.link_bytes_per_second = link, .storage_bytes_per_second = storage}));
          },
          nb::arg("link").none(), nb::arg("storage").none())
      .def(
          "write_trace", [](const stream_loader& l, const nb::bytes& file) { return l.write_trace(bytes_of(file)); },
          nb::arg("file"))
      .def("place_of", &place_of, nb::arg("field"), nb::arg("row"))
      .def("class_names", &class_names_of, nb::arg("field"))
      .def("state", &stream_loader::state, nb::arg("epoch"), nb::arg("batch"))
      .def("resume_at", &stream_loader::resume_at, nb::arg("state"))
      .def_prop_ro("batches", [](const stream_loader& l) {
        return l.look_at([](const pipeline::pipeline& pipe) { return pipe.batches_per_epoch(); });
      });
}

}  // namespace penstock::python

NB_MODULE(_core, m) {
  using namespace penstock::python;
  nanobind::set_leak_warnings(false);  // loaders may live until the interpreter's end
  m.attr("has_cuda") = PENSTOCK_HAS_CUDA != 0;
  bind_errors(m);
  bind_batch(m);
  bind_loader(m);
  m.def("price", &price_of, nb::arg("source"), nb::arg("order"), nb::arg("batch_rows"), nb::arg("classes"));
  m.def(
      "inspect",
      [](const nanobind::bytes& file) {
        const at_work counted(at_work::with::a_call);
        return inspect({file.c_str(), file.size()});
      },
      nanobind::arg("file"));
}
