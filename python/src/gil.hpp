#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Takes the GIL again, or for a thread that may have none. Where the interpreter ends meanwhile, CPython before 3.14
/// ends the thread in here (a daemon thread in a loop, for instance), which no C++ above it survives: as in 3.14, the
/// thread then sleeps for as long as the process lasts.
void take_gil(PyThreadState* state) noexcept;
PyGILState_STATE take_gil() noexcept;

/// For work that needs no interpreter: as nanobind's gil_scoped_release, but for the interpreter's end.
class without_gil {
 public:
  without_gil() noexcept : state_(PyEval_SaveThread()) {}
  ~without_gil() { take_gil(state_); }
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;

 private:
  PyThreadState* state_;
};

/// For calls of Python: as nanobind's gil_scoped_acquire, but for the interpreter's end.
class with_gil {
 public:
  with_gil() noexcept : state_(take_gil()) {}
  ~with_gil() { PyGILState_Release(state_); }
  with_gil(const with_gil&) = delete;
  with_gil& operator=(const with_gil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace penstock::python
