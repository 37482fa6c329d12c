#include "batch_handle.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <unistd.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "errors.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace dlpack = pipeline::dlpack;
namespace {

std::shared_ptr<pipeline::batch> shared(pipeline::batch rows) {
  const auto give_back = [process = getpid()](pipeline::batch* batch) {
    if (getpid() == process) delete batch;
  };
  return {new pipeline::batch(std::move(rows)), give_back};
}

/// From the last multiple of 16 bytes on. Memory of batches begins at one, so that nothing before it is touched.
std::size_t bytes_before(const void* rows) noexcept { return reinterpret_cast<std::uintptr_t>(rows) % 16; }

/// A capsule owns its tensor until a consumer renames it.
template <class Managed>
nb::object make_capsule(std::unique_ptr<Managed, dlpack::call_deleter> tensor) {
  constexpr bool versioned = std::is_same_v<Managed, dlpack::managed_tensor_versioned>;
  static constexpr const char* name = versioned ? "dltensor_versioned" : "dltensor";
  PyObject* capsule = PyCapsule_New(tensor.get(), name, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, name)) return;
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(self, name));
    managed->deleter(managed);
  });
  if (!capsule) throw nb::python_error();
  (void)tensor.release();
  return nb::steal(capsule);
}

}  // namespace

CUstream_st* native_stream(std::uintptr_t handle) noexcept {
  return handle == 1 ? nullptr : reinterpret_cast<CUstream_st*>(handle);  // NOLINT(performance-no-int-to-ptr)
}

batch_handle::batch_handle(pipeline::batch rows, std::uint64_t epoch)
    : epoch_(epoch),
      index_(rows.index()),
      rows_(rows.rows()),
      valid_rows_(rows.valid_rows()),
      has_mask_(rows.mask() != nullptr) {
  share_ = pipeline::shared_batch(shared(std::move(rows)));
}

void batch_handle::refuse_late_use(const std::string& what) const {
  if (!share_)
    throw given_back(what + " of batch " + std::to_string(index_) + " of epoch " + std::to_string(epoch_) +
                     " is asked for after the batch was given back, by release() or close(), or as its loop went on; "
                     "arrays that were made from it before stay valid");
}

const pipeline::shared_batch& batch_handle::share(const char* what) const {
  if (!share_) refuse_late_use(what);
  return share_;
}

gpu::stream_ref batch_handle::stream_of(std::uintptr_t handle) const {
  return {share_.rows().stream().device(), native_stream(handle)};
}

nb::bytes batch_handle::row_ids() const {
  const auto ids = share("the list of row numbers").rows().row_ids();
  return nb::bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]));
}

nb::bytes batch_handle::row_identities(const std::string& field) const {
  static_assert(sizeof(pipeline::row_identity) == 2 * sizeof(std::uint64_t));
  const auto ids = share("the list of row identities").rows().row_identities(field);
  return nb::bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]));
}

std::optional<std::uintptr_t> batch_handle::stream() const {
  const gpu::stream_ref stream = share("the stream").rows().stream();
  if (stream.device().is_host()) return std::nullopt;
  return reinterpret_cast<std::uintptr_t>(stream.native());
}

void batch_handle::used_on(std::uintptr_t stream) const { share("use on another stream").used_on(stream_of(stream)); }

template <class Change>
nb::object batch_handle::capsule_of(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                                    bool versioned, Change change) const {
  if (!share_) refuse_late_use(field ? "field '" + *field + "'" : "the mask");
  std::optional<gpu::stream_ref> consumer;
  if (stream) consumer = stream_of(*stream);
  const auto made = [&](auto managed) {
    change(managed->tensor);
    return make_capsule(std::move(managed));
  };
  if (versioned)
    return made(field ? share_.tensor_versioned(*field, consumer) : share_.mask_tensor_versioned(consumer));
  return made(field ? share_.tensor(*field, consumer) : share_.mask_tensor(consumer));
}

nb::object batch_handle::capsule(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                                 bool versioned) const {
  return capsule_of(field, stream, versioned, [](const dlpack::tensor&) {});
}

nb::object batch_handle::flat_capsule(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                                      bool versioned) const {
  return capsule_of(field, stream, versioned, [](dlpack::tensor& rows) {
    const std::size_t before = bytes_before(rows.data), element = rows.element.bits / 8;
    rows.data = static_cast<std::byte*>(rows.data) - before;
    rows.shape[0] = std::accumulate(rows.shape, rows.shape + rows.dimensions, std::int64_t{1}, std::multiplies<>{}) +
                    static_cast<std::int64_t>(before / element);
    rows.strides[0] = 1;
    rows.dimensions = 1;
  });
}

std::size_t batch_handle::elements_before(const std::optional<std::string>& field) const {
  if (!share_) refuse_late_use(field ? "field '" + *field + "'" : "the mask");
  const pipeline::batch& rows = share_.rows();
  if (!field) return bytes_before(rows.mask());
  const pipeline::field_view view = rows.view(*field);
  return bytes_before(view.data) / size_of(view.element);
}

void bind_batch(nb::module_& m) {
  nb::class_<batch_handle>(m, "BatchHandle")
      .def_prop_ro("index", &batch_handle::index)
      .def_prop_ro("rows", &batch_handle::rows)
      .def_prop_ro("valid_rows", &batch_handle::valid_rows)
      .def_prop_ro("has_mask", &batch_handle::has_mask)
      .def_prop_ro("is_released", &batch_handle::is_released)
      .def("release", &batch_handle::release)
      .def("row_ids", &batch_handle::row_ids)
      .def("row_identities", &batch_handle::row_identities, nb::arg("field"))
      .def_prop_ro("stream", &batch_handle::stream)
      .def("used_on", &batch_handle::used_on, nb::arg("stream"))
      .def("capsule", &batch_handle::capsule, nb::arg("field").none(), nb::arg("stream").none(), nb::arg("versioned"))
      .def("flat_capsule", &batch_handle::flat_capsule, nb::arg("field").none(), nb::arg("stream").none(),
           nb::arg("versioned"))
      .def("elements_before", &batch_handle::elements_before, nb::arg("field").none());
}

}  // namespace penstock::python
