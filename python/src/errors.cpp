#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <penstock/bytes.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/io/error.hpp>
#include <penstock/pipeline/error.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "raised.hpp"
#include "wording.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

nb::object decode(std::string_view bytes, const char* errors) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), errors);
  if (!text) throw nb::python_error();
  return nb::steal(text);
}

nb::object make(const char* type, const std::exception& e) {
  return nb::module_::import_("penstock._errors").attr(type)(text(in_python(e.what())));
}

void raise(const nb::object& exception) { PyErr_SetObject(exception.type().ptr(), exception.ptr()); }

void add_context(nb::object& to, const io::error_context& where) {
  to.attr("file") = name(where.file);
  to.attr("dataset") = name(where.dataset);
  to.attr("first_row") = where.rows.first;
  to.attr("row_count") = where.rows.count;
  to.attr("hdf5") = text(where.hdf5);
  if (where.system != 0) to.attr("errno") = where.system;
}

void add_place(nb::object& to, const pipeline::error::place& where) {
  to.attr("stage") = text(where.stage);
  to.attr("epoch") = where.epoch;
  to.attr("rows") = text(where.rows);
}

nb::dict bytes_of(const gpu::budget& limits) {
  nb::dict bytes;
  bytes["device_memory"] = limits.device_bytes;
  bytes["pinned_memory"] = limits.pinned_bytes;
  bytes["host_memory"] = limits.host_bytes;
  return bytes;
}

/// What ended an epoch, under the type of its cause: who catches OSError gets files that cannot be read, wherever.
void raise_of(const pipeline::error& e) {
  nb::object exception;
  try {
    if (e.cause()) std::rethrow_exception(e.cause());
    exception = make("PipelineError", e);
  } catch (const io::error& cause) {
    exception = make("DataError", e);
    add_context(exception, cause.context());
  } catch (const gpu::error&) {
    exception = make("DeviceError", e);
  } catch (const raised& cause) {
    exception = make("PipelineError", e);
    exception.attr("__cause__") = cause.exception();
  } catch (const std::exception&) {
    exception = make("PipelineError", e);
  }
  add_place(exception, e.where());
  raise(exception);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const io::error& e) {
    nb::object exception = make("DataError", e);
    add_context(exception, e.context());
    raise(exception);
  } catch (const gpu::budget_error& e) {
    nb::object exception = make("BudgetError", e);
    exception.attr("limits") = bytes_of(e.limits());
    exception.attr("smallest") = bytes_of(e.smallest());
    raise(exception);
  } catch (const gpu::error& e) {
    raise(make("DeviceError", e));
  } catch (const pipeline::error& e) {
    raise_of(e);
  } catch (const pipeline::stopped&) {  // close() alone stops a run
    raise(make("ClosedError", closed()));
  } catch (const given_back& e) {
    raise(make("GivenBackError", e));
  } catch (const closed& e) {
    raise(make("ClosedError", e));
  } catch (const forked& e) {
    raise(make("ForkError", e));
  } catch (const error& e) {
    raise(make("PenstockError", e));
  } catch (const std::invalid_argument& e) {
    PyErr_SetObject(PyExc_ValueError, text(in_python(e.what())).ptr());
  } catch (const nb::cast_error&) {
    PyErr_SetString(PyExc_TypeError, "an argument has a type that it cannot have, or a text that is not Unicode");
  }
}

}  // namespace

nb::object text(std::string_view bytes) { return decode(bytes, "replace"); }
nb::object name(std::string_view bytes) { return decode(bytes, "surrogateescape"); }

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  m.def(
      "parse_bytes", [](const std::string& text) { return parse_bytes(text); }, nb::arg("text"));
}

}  // namespace penstock::python
