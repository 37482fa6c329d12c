#include "row_criteria.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

pipeline::selection ranges_of(const nb::tuple& of) {
  std::vector<pipeline::extent> ranges;
  for (const nb::handle range : nb::cast<nb::list>(of[1])) {
    const auto pair = nb::cast<nb::tuple>(range);
    ranges.push_back({nb::cast<std::uint64_t>(pair[0]), nb::cast<std::uint64_t>(pair[1])});
  }
  return pipeline::selection(std::move(ranges));
}

pipeline::selection rows_of(const nb::tuple& of) {
  const auto bytes = nb::cast<nb::bytes>(of[1]);
  std::vector<std::uint64_t> rows(bytes.size() / sizeof(std::uint64_t));
  if (!rows.empty()) std::memcpy(rows.data(), bytes.c_str(), rows.size() * sizeof(rows[0]));
  return pipeline::selection(std::move(rows), nb::cast<std::optional<std::uint64_t>>(of[2]));
}

pipeline::selection part_of(const nb::tuple& of) {
  const pipeline::split how{.validation = nb::cast<double>(of[1]),
                            .seed = nb::cast<std::uint64_t>(of[2]),
                            .group = nb::cast<std::string>(of[3])};
  return nb::cast<bool>(of[4]) ? pipeline::validation_part(how) : pipeline::training_part(how);
}

}  // namespace

row_criteria::row_criteria(const nb::list& criteria) {
  for (const nb::handle criterion : criteria) {
    const auto of = nb::cast<nb::tuple>(criterion);
    const auto kind = nb::cast<std::string>(of[0]);
    auto one = kind == "ranges"  ? ranges_of(of)
               : kind == "rows"  ? rows_of(of)
               : kind == "where" ? where(of)
                                 : part_of(of);
    selection_ = selection_ ? *selection_ & one : one;
  }
}

row_criteria::~row_criteria() {
  for (const auto& callable : callables_) callable->reset();
}

pipeline::selection row_criteria::where(const nb::tuple& of) {
  auto callable = std::make_shared<nb::object>(of[2]);
  callables_.push_back(callable);
  return pipeline::where(nb::cast<std::string>(of[1]), [callable](double value) {
    const with_gil locked;
    const int keep = PyObject_IsTrue((*callable)(value).ptr());
    if (keep < 0) throw nb::python_error();
    return keep == 1;
  });
}

}  // namespace penstock::python
