#pragma once

#include <nanobind/nanobind.h>

#include <penstock/pipeline/selection.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace penstock::python {

/// Which rows take part, as Python says it: a list of ("ranges", [(first, count), ...]), ("rows", bytes of uint64, rows
/// that a mask tells of, or None), ("where", field, callable) and ("part", validation, seed, group, whether it is the
/// validation part).
///
/// Python's callables live as long as this: a pipeline that keeps the selection has no use for them once it is open,
/// and its last owner may be a thread without an interpreter.
class row_criteria {
 public:
  explicit row_criteria(const nanobind::list& criteria);
  ~row_criteria();
  row_criteria(const row_criteria&) = delete;
  row_criteria& operator=(const row_criteria&) = delete;

  const std::optional<pipeline::selection>& selection() const noexcept { return selection_; }

  /// For a source that is opened several times, before each: Python is asked once for each row, and its answers are
  /// kept, one bit for each.
  void keep_answers() noexcept;

 private:
  struct condition;
  pipeline::selection where(const nanobind::tuple& of);

  std::vector<std::shared_ptr<condition>> conditions_;
  std::optional<pipeline::selection> selection_;
};

}  // namespace penstock::python
