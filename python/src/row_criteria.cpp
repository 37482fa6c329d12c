#include "row_criteria.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

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

struct row_criteria::condition {
  nb::object keep;
  bool keeps_answers = false;
  std::vector<bool> answers{};
  std::size_t next = 0;  ///< rows come in the same order whenever the source is opened

  bool operator()(double value) {
    if (!keeps_answers) return asked(value);
    if (next == answers.size()) answers.push_back(asked(value));
    return answers[next++];
  }

 private:
  bool asked(double value) const {
    const with_gil locked;
    // What is no bytecode, as a set's __contains__, looks at no signals by itself.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const int answer = PyObject_IsTrue(keep(value).ptr());
    if (answer < 0) throw nb::python_error();
    return answer == 1;
  }
};

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
  for (const auto& one : conditions_) one->keep.reset(), one->answers = {};
}

void row_criteria::keep_answers() noexcept {
  for (const auto& one : conditions_) one->keeps_answers = true, one->next = 0;
}

pipeline::selection row_criteria::where(const nb::tuple& of) {
  auto made = std::make_shared<condition>();
  made->keep = of[2];
  conditions_.push_back(made);
  return pipeline::where(nb::cast<std::string>(of[1]), [made](double value) { return (*made)(value); });
}

}  // namespace penstock::python
