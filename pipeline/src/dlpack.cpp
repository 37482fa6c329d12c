#include <penstock/pipeline/dlpack.hpp>

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

namespace penstock::pipeline {
namespace {

// Offsets of dlpack.h on machines with pointers of 8 bytes.
static_assert(sizeof(void*) == 8);
static_assert(sizeof(dlpack::tensor) == 48 && offsetof(dlpack::tensor, element) == 20);
static_assert(sizeof(dlpack::managed_tensor) == 64 && offsetof(dlpack::managed_tensor, owner) == 48);
static_assert(sizeof(dlpack::managed_tensor_versioned) == 80);
static_assert(offsetof(dlpack::managed_tensor_versioned, flags) == 24);
static_assert(offsetof(dlpack::managed_tensor_versioned, tensor) == 32);

struct shaped {
  const void* data;
  type element;
  std::vector<std::int64_t> shape;
  bool read_only;
};

/// What a tensor stands on, with the tensor itself.
template <class Managed>
struct lent {
  std::shared_ptr<batch> rows;
  std::vector<std::int64_t> shape, strides;
  Managed managed;
};

std::vector<std::int64_t> c_order(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

template <class Managed>
std::unique_ptr<Managed, dlpack::call_deleter> lend(std::shared_ptr<batch> rows, shaped what) {
  const gpu::device device = rows->stream().device();
  auto strides = c_order(what.shape);
  auto owner = std::make_unique<lent<Managed>>(
      lent<Managed>{std::move(rows), std::move(what.shape), std::move(strides), Managed{}});
  Managed& managed = owner->managed;
  if constexpr (std::is_same_v<Managed, dlpack::managed_tensor_versioned>)
    managed.flags = what.read_only ? dlpack::read_only : 0;
  managed.tensor = {const_cast<void*>(what.data),  // DLPack has no pointer to constant data
                    dlpack::device_of(device),
                    static_cast<std::int32_t>(owner->shape.size()),
                    dlpack::data_type_of(what.element),
                    owner->shape.data(),
                    owner->strides.data(),
                    0};
  managed.owner = owner.get();
  managed.deleter = [](Managed* self) { delete static_cast<lent<Managed>*>(self->owner); };
  return std::unique_ptr<Managed, dlpack::call_deleter>(&owner.release()->managed);
}

shaped field_of(const batch& rows, std::string_view name) {
  const field_view view = rows.view(name);
  shaped field{view.data, view.element, {static_cast<std::int64_t>(rows.rows())}, false};
  field.shape.insert(field.shape.end(), view.row_shape->begin(), view.row_shape->end());
  return field;
}

shaped mask_of(const batch& rows) {
  if (!rows.mask()) throw std::invalid_argument("the batch has no mask: its last rows are not padded");
  return {rows.mask(), type::uint8, {static_cast<std::int64_t>(rows.rows())}, true};
}

}  // namespace

dlpack::device dlpack::device_of(gpu::device d) noexcept {
  return d.is_cuda() ? device{cuda, d.ordinal()} : device{cpu, 0};
}

dlpack::data_type dlpack::data_type_of(type element) noexcept {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(element));
  switch (element) {
    case type::int8:
    case type::int16:
    case type::int32:
    case type::int64: return {integer, bits, 1};
    case type::uint8:
    case type::uint16:
    case type::uint32:
    case type::uint64: return {unsigned_integer, bits, 1};
    case type::bfloat16: return {bfloat, bits, 1};
    case type::float16:
    case type::float32:
    case type::float64: break;
  }
  return {floating, bits, 1};
}

const batch& shared_batch::rows() const {
  if (!rows_) throw std::invalid_argument("there is no batch: it was given back, or the run has ended");
  return *rows_;
}

void shared_batch::used_on(gpu::stream_ref other) const {
  if (other != rows().stream()) rows_->used_on(other);
}

void shared_batch::order_for(const std::optional<gpu::stream_ref>& consumer) const {
  if (consumer) used_on(*consumer);
}

dlpack::managed_tensor_ptr shared_batch::tensor(std::string_view field, std::optional<gpu::stream_ref> consumer) const {
  auto lent = lend<dlpack::managed_tensor>(rows_, field_of(rows(), field));
  order_for(consumer);
  return lent;
}

dlpack::managed_tensor_versioned_ptr shared_batch::tensor_versioned(std::string_view field,
                                                                    std::optional<gpu::stream_ref> consumer) const {
  auto lent = lend<dlpack::managed_tensor_versioned>(rows_, field_of(rows(), field));
  order_for(consumer);
  return lent;
}

dlpack::managed_tensor_ptr shared_batch::mask_tensor(std::optional<gpu::stream_ref> consumer) const {
  auto lent = lend<dlpack::managed_tensor>(rows_, mask_of(rows()));
  order_for(consumer);
  return lent;
}

dlpack::managed_tensor_versioned_ptr shared_batch::mask_tensor_versioned(
    std::optional<gpu::stream_ref> consumer) const {
  auto lent = lend<dlpack::managed_tensor_versioned>(rows_, mask_of(rows()));
  order_for(consumer);
  return lent;
}

}  // namespace penstock::pipeline
