#include "raised.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

/// As UTF-8 without zero bytes, whatever it holds.
std::string plain(nb::handle text) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  std::string all(PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr())));
  for (std::size_t at = 0; (at = all.find('\0', at)) != std::string::npos;) all.replace(at, 1, "\\x00");
  return all;
}

/// "ValueError: what it says"; less where the exception does not say it.
std::string sentence_of(const nb::python_error& error) {
  std::string sentence = "an exception";
  try {
    sentence = plain(error.type().attr("__name__"));
    const std::string text = plain(nb::str(error.value()));
    if (!text.empty()) sentence += ": " + text;
  } catch (const nb::python_error&) {  // of its __str__(), or of its class
  }
  return sentence;
}

}  // namespace

raised::raised(const nb::python_error& of, std::shared_ptr<held_exceptions> held)
    : std::runtime_error(sentence_of(of)),
      exception_(new nb::object(nb::borrow(of.value())), [held](nb::object* exception) {
        if (!Py_IsInitialized()) return;
        const with_gil locked;
        std::erase(*held, exception);
        delete exception;
      }) {
  held->push_back(exception_.get());
}

}  // namespace penstock::python
