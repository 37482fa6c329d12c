#pragma once

#include <nanobind/nanobind.h>

#include <penstock/pipeline/description.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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

/// Python functions that work on blocks of rows on the host, as Python says it: a list of (name, function, fields it
/// sees or None, [(field, type, row shape), ...] that it puts out, blocks at once).
///
/// The functions live as long as this, which is longer than the pipeline that calls them: copies of a transform, whose
/// last owner may be a thread without an interpreter, do not own them.
class row_maps {
 public:
  explicit row_maps(const nanobind::list& maps);
  ~row_maps() { let_go(); }
  row_maps(row_maps&&) = default;
  row_maps& operator=(row_maps&&) = delete;

  bool empty() const noexcept { return maps_.empty(); }
  /// Transforms of rows that begin with these fields, whose shapes Python is told. They take the GIL while they run.
  std::vector<pipeline::host_transform> transforms(std::vector<pipeline::field_shape> fields) const;
  /// Whether one of the functions runs on this thread; holds the GIL.
  bool run_here() const noexcept;
  /// The functions are not called any more; holds the GIL.
  void let_go() noexcept;

 private:
  struct map;
  std::vector<std::shared_ptr<map>> maps_;
};

}  // namespace penstock::python
