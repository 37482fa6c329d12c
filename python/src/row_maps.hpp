#pragma once

#include <nanobind/nanobind.h>

#include <penstock/pipeline/description.hpp>

#include <memory>
#include <string>
#include <vector>

#include "foresight.hpp"
#include "raised.hpp"

namespace penstock::python {

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
  /// Which epochs the functions work ahead of.
  foresight& ahead() const noexcept { return *ahead_; }
  /// Whether one of the functions runs on this thread; holds the GIL.
  bool run_here() const noexcept;
  /// The functions are not called any more; holds the GIL. One that runs goes on.
  void let_go() noexcept;
  /// For the garbage collector: the functions, and what they raised and C++ holds.
  int traverse(visitproc visit, void* arg) const noexcept;

 private:
  struct map;
  std::vector<std::shared_ptr<map>> maps_;
  std::shared_ptr<foresight> ahead_ = std::make_shared<foresight>();
  std::shared_ptr<held_exceptions> held_ = std::make_shared<held_exceptions>();
};

}  // namespace penstock::python
