#include "gil.hpp"

#include <unistd.h>

namespace penstock::python {
namespace {

/// From a handler of pthread_exit()'s unwinding, which may be caught, and must not be left.
[[noreturn]] void sleep_for_good() noexcept {
  for (;;) pause();
}

}  // namespace

void take_gil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    sleep_for_good();
  }
}

PyGILState_STATE take_gil() noexcept {
  try {
    return PyGILState_Ensure();
  } catch (...) {
    sleep_for_good();
  }
}

}  // namespace penstock::python
