#include <penstock/gpu/memory.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "cuda_backend.hpp"
#include "host/work.hpp"

namespace penstock::gpu {
namespace {

// One allocation of a kind, freed by the backend that made it.
struct slab {
  std::unique_ptr<void, void (*)(void*) noexcept> address;
  std::size_t bytes;
  std::byte* data() const noexcept { return static_cast<std::byte*>(address.get()); }
};

slab allocate(device d, memory_kind kind, std::size_t bytes, fault_injector* faults) {
  const bool pinned = kind == memory_kind::pinned;
  if (bytes == 0) return {{nullptr, host::free}, 0};
  if (d.is_host()) {
    const fault_site site = pinned ? fault_site::allocate_pinned : fault_site::allocate_device;
    return {{host::allocate(bytes, site, faults), host::free}, bytes};
  }
  if (pinned) return {{cuda::allocate_pinned(d.ordinal(), bytes, faults), cuda::free_pinned}, bytes};
  return {{cuda::allocate_device(d.ordinal(), bytes, faults), cuda::free_device}, bytes};
}

std::vector<std::size_t> offsets_of(const ledger& items) {
  std::array<std::size_t, memory_kinds.size()> next{};
  std::vector<std::size_t> offsets;
  for (const auto& item : items.items()) {
    std::size_t& offset = next[static_cast<std::size_t>(item.kind)];
    offsets.push_back(offset);
    offset += align_up(item.bytes, ledger::alignment);
  }
  return offsets;
}

/// The bytes of `shared` in `whole`, which stays their owner.
slab part_of(const memory& whole, const ledger& shared, memory_kind kind, std::size_t bytes) {
  const auto keep = [](void*) noexcept {};
  if (bytes == 0) return {{nullptr, keep}, 0};
  if (bytes > shared.total(kind))
    throw std::invalid_argument(
        fmt::format("{} bytes of {} memory do not fit a part of {}", bytes, name_of(kind), shared.total(kind)));
  std::byte* first = nullptr;
  std::size_t end = 0;
  for (const auto& item : shared.items()) {
    if (item.kind != kind) continue;
    const auto place = whole.at(kind, item.name);
    if (first == nullptr) first = place.data();
    if (place.data() != first + end || place.size() != item.bytes)
      throw std::invalid_argument(fmt::format("'{}' does not follow the item before it in the whole", item.name));
    end += align_up(item.bytes, ledger::alignment);
  }
  return {{first, keep}, bytes};
}

}  // namespace

struct memory::impl {
  std::shared_ptr<memory> whole;  // owns the bytes, where this is a part
  gpu::device device;
  ledger items;
  slab device_slab;
  slab pinned_slab;
  std::vector<std::size_t> offsets;  // of each item in its slab

  const slab* slab_of(memory_kind kind) const noexcept {
    if (kind == memory_kind::host) return nullptr;
    return kind == memory_kind::device ? &device_slab : &pinned_slab;
  }
};

memory::memory(gpu::device d, const ledger& items, fault_seam faults)
    : impl_(new impl{
          nullptr, d, items, allocate(d, memory_kind::device, items.total(memory_kind::device), faults.get()),
          allocate(d, memory_kind::pinned, items.total(memory_kind::pinned), faults.get()), offsets_of(items)}) {}

memory::memory(std::shared_ptr<memory> whole, const ledger& shared, const ledger& items)
    : impl_(new impl{
          whole, whole->device(), items, part_of(*whole, shared, memory_kind::device, items.total(memory_kind::device)),
          part_of(*whole, shared, memory_kind::pinned, items.total(memory_kind::pinned)), offsets_of(items)}) {}

memory::memory(memory&&) noexcept = default;
memory& memory::operator=(memory&&) noexcept = default;
memory::~memory() = default;

gpu::device memory::device() const noexcept { return impl_->device; }

std::span<std::byte> memory::at(memory_kind kind, std::string_view name) const {
  const slab* from = impl_->slab_of(kind);
  const auto& items = impl_->items.items();
  for (std::size_t n = 0; n < items.size() && from != nullptr; ++n)
    if (items[n].kind == kind && items[n].name == name) return {from->data() + impl_->offsets[n], items[n].bytes};
  throw std::invalid_argument(fmt::format("there is no allocated item '{}' of {} memory", name, name_of(kind)));
}

std::size_t memory::bytes(memory_kind kind) const noexcept {
  const slab* of_kind = impl_->slab_of(kind);
  return of_kind == nullptr ? 0 : of_kind->bytes;
}

const ledger& memory::items() const noexcept { return impl_->items; }

void copy(stream_ref stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (stream.device().is_cuda()) return cuda::copy(stream, to, from, bytes);
  host::begin("cudaMemcpyAsync", stream.faults(), bytes);
  std::memcpy(to, from, bytes);
}

void fill(stream_ref stream, void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  if (stream.device().is_cuda()) return cuda::fill(stream, to, value, bytes);
  host::begin("cudaMemsetAsync", stream.faults(), bytes);
  std::memset(to, value, bytes);
}

}  // namespace penstock::gpu
