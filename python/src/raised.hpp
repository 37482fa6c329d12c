#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace penstock::python {

/// Exceptions that C++ holds, wherever: for the garbage collector. Used with the GIL.
using held_exceptions = std::vector<nanobind::object*>;

/// What a Python function raised on one of Penstock's threads, kept for the thread that waits for its rows.
class raised : public std::runtime_error {
 public:
  /// Is among `held` as long as a copy lives; holds the GIL.
  raised(const nanobind::python_error& of, std::shared_ptr<held_exceptions> held);
  const nanobind::object& exception() const noexcept { return *exception_; }

 private:
  std::shared_ptr<nanobind::object> exception_;  ///< let go with the GIL, on whichever thread that is
};

}  // namespace penstock::python
