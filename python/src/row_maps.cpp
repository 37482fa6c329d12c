#include "row_maps.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "errors.hpp"
#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

using shapes = std::vector<pipeline::field_shape>;

const pipeline::field_shape& find(const shapes& fields, std::string_view wanted) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.name == wanted; });
  if (found == fields.end()) throw std::invalid_argument("there is no field '" + std::string(wanted) + "'");
  return *found;
}

/// Lets later fields take the places of earlier ones with the same name.
shapes with(shapes fields, const shapes& outputs) {
  for (const auto& output : outputs) {
    const auto place = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == output.name; });
    if (place == fields.end())
      fields.push_back(output);
    else
      *place = output;
  }
  return fields;
}

nb::tuple shape_of(const pipeline::field_shape& field, std::size_t rows) {
  nb::list shape;
  shape.append(rows);
  for (const std::uint64_t extent : field.row_shape) shape.append(extent);
  return nb::tuple(shape);
}

/// Name to (bytes or None, type, shape).
nb::dict described(std::span<const pipeline::block_field> fields, const shapes& known, std::size_t rows,
                   const std::optional<std::vector<std::string>>& only, bool with_values) {
  nb::dict all;
  for (const pipeline::block_field& field : fields) {
    if (only && std::find(only->begin(), only->end(), field.name) == only->end()) continue;
    nb::object values = nb::none();
    if (with_values) values = nb::bytearray(reinterpret_cast<const char*>(field.data), rows * field.row_bytes);
    all[name(field.name)] =
        nb::make_tuple(values, text(name_of(field.element)), shape_of(find(known, field.name), rows));
  }
  return all;
}

/// "rows 0-1999"; of rows in another order the least and the greatest.
std::string rows_of(const pipeline::block& block) {
  const auto [least, most] = std::minmax_element(block.row_ids(), block.row_ids() + block.rows());
  return "rows " + std::to_string(*least) + "-" + std::to_string(*most);
}

/// This thread, in a list, for as long as it lives.
class presence {
 public:
  explicit presence(std::vector<std::thread::id>& in) : in_(in) { in_.push_back(std::this_thread::get_id()); }
  ~presence() { in_.erase(std::find(in_.begin(), in_.end(), std::this_thread::get_id())); }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;

 private:
  std::vector<std::thread::id>& in_;
};

class buffer {
 public:
  explicit buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~buffer() { PyBuffer_Release(&view_); }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace

struct row_maps::map {
  std::string name;
  nb::object function;  ///< none once it was let go
  std::optional<std::vector<std::string>> fields;
  shapes outputs;
  std::size_t concurrency = 1;
  std::shared_ptr<foresight> ahead;
  std::shared_ptr<held_exceptions> held;
  mutable std::vector<std::thread::id> threads;  ///< that are in the function; changed with the GIL

  /// `before`, `after`: shapes of the fields as they come in and go out.
  void operator()(const pipeline::block& block, const shapes& before, const shapes& after) const {
    const with_gil locked;
    // Where the loader is closed, or a function has failed for them, nobody waits for these rows.
    if (!function || ahead->is_spoiled(block.epoch())) return;
    const presence here(threads);
    try {
      call(block, before, after);
    } catch (const std::exception& error) {
      if (!ahead->is_ahead(block.epoch())) throw;
      ahead->keep(block.epoch(), name, rows_of(block), error.what(), std::current_exception());
    }
  }

 private:
  /// What Python raises is thrown as what any thread may hold.
  void call(const pipeline::block& block, const shapes& before, const shapes& after) const {
    try {
      apply(block, before, after);
    } catch (const nb::python_error& error) {
      throw raised(error, held);
    }
  }

  void apply(const pipeline::block& block, const shapes& before, const shapes& after) const {
    const std::size_t rows = block.rows();
    const nb::bytes ids(reinterpret_cast<const char*>(block.row_ids()), rows * sizeof(std::uint64_t));
    nb::list declared;
    for (const auto& output : outputs) declared.append(python::name(output.name));
    const nb::object result = nb::module_::import_("penstock._map")
                                  .attr("apply")(function, block.seed(), block.epoch(), ids,
                                                 described(block.inputs(), before, rows, fields, true),
                                                 described(block.outputs(), after, rows, {}, false), declared);
    const auto made = nb::cast<nb::dict>(result);
    for (const pipeline::block_field& output : block.outputs()) {
      const nb::object field = python::name(output.name);
      if (!made.contains(field)) continue;
      const nb::object array = nb::borrow(made[field]);
      const buffer values(array);
      if (values.bytes().size() != rows * output.row_bytes)
        throw std::runtime_error("field '" + std::string(output.name) + "' has another size than its block");
      std::memcpy(output.data, values.bytes().data(), values.bytes().size());
    }
  }
};

row_maps::row_maps(const nb::list& maps) {
  for (const nb::handle one : maps) {
    const auto of = nb::cast<nb::tuple>(one);
    auto made = std::make_shared<map>();
    made->name = nb::cast<std::string>(of[0]);
    made->function = of[1];
    if (!of[2].is_none()) made->fields = nb::cast<std::vector<std::string>>(of[2]);
    for (const nb::handle output : nb::cast<nb::list>(of[3])) {
      const auto parts = nb::cast<nb::tuple>(output);
      made->outputs.push_back({nb::cast<std::string>(parts[0]), parse_type(nb::cast<std::string>(parts[1])),
                               nb::cast<std::vector<std::uint64_t>>(parts[2])});
    }
    made->concurrency = nb::cast<std::size_t>(of[4]);
    made->ahead = ahead_;
    made->held = held_;
    maps_.push_back(std::move(made));
  }
}

std::vector<pipeline::host_transform> row_maps::transforms(shapes fields) const {
  std::vector<pipeline::host_transform> all;
  for (const auto& one : maps_) {
    if (one->fields)
      for (const std::string& wanted : *one->fields) find(fields, wanted);
    shapes after = with(fields, one->outputs);
    all.push_back(pipeline::transform_host(
        {.name = one->name, .concurrency = one->concurrency, .outputs = one->outputs},
        [one, before = std::move(fields), after](const pipeline::block& block) { (*one)(block, before, after); }));
    fields = std::move(after);
  }
  return all;
}

bool row_maps::run_here() const noexcept {
  return std::any_of(maps_.begin(), maps_.end(), [](const auto& one) {
    return std::find(one->threads.begin(), one->threads.end(), std::this_thread::get_id()) != one->threads.end();
  });
}

void row_maps::let_go() noexcept {
  // What goes may call Python, which may come here: all is taken out first.
  std::vector<nb::object> gone;
  for (const auto& one : maps_) gone.push_back(std::move(one->function));
  if (ahead_) ahead_->forget();
}

int row_maps::traverse(visitproc visit, void* arg) const noexcept {
  for (const auto& one : maps_) Py_VISIT(one->function.ptr());
  if (held_)
    for (const nb::object* const exception : *held_) Py_VISIT(exception->ptr());
  return 0;
}

}  // namespace penstock::python
