#include "raised.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

/// "ValueError: what it says"
std::string sentence_of(const nb::python_error& error) {
  return nb::cast<std::string>(nb::str(error.type().attr("__name__"))) + ": " +
         nb::cast<std::string>(nb::str(error.value()));
}

}  // namespace

raised::raised(const nb::python_error& of)
    : std::runtime_error(sentence_of(of)),
      exception_(new nb::object(nb::borrow(of.value())), [](nb::object* exception) {
        if (!Py_IsInitialized()) return;
        const with_gil locked;
        delete exception;
      }) {}

}  // namespace penstock::python
