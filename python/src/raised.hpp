#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>

namespace penstock::python {

/// What a Python function raised on one of Penstock's threads, kept for the thread that waits for its rows.
class raised : public std::runtime_error {
 public:
  /// The exception that is set in this thread's interpreter is `of`; holds the GIL.
  explicit raised(const nanobind::python_error& of);
  const nanobind::object& exception() const noexcept { return *exception_; }

 private:
  std::shared_ptr<nanobind::object> exception_;  ///< let go with the GIL, on whichever thread that is
};

}  // namespace penstock::python
