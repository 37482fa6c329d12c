#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/stream.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace penstock::gpu {

/// The memory of one plan: one slab of device and one of pinned memory, allocated once from a ledger; each item is a
/// fixed part of its slab. Nothing else in Penstock allocates device or pinned memory. Items of memory_kind::host are
/// listed only: their owners, as io's readers, hold them. The bytes are not initialised.
///
/// Destroying it frees the slabs (the driver may wait for the device); work that uses them must be done by then.
class memory {
 public:
  /// Throws gpu::error naming the slab and its bytes where the driver or the system refuses. `faults` is asked at
  /// fault_site::allocate_device and allocate_pinned, on the host device too.
  memory(gpu::device d, const ledger& items, fault_seam faults = {});
  /// Lays out `items` anew in the bytes of `shared`, which is a part of whole's ledger that was added to it at once:
  /// for phases that take turns in the same memory. Allocates nothing and keeps `whole`. Throws std::invalid_argument
  /// where `items` does not fit, or `shared` is no such part.
  memory(std::shared_ptr<memory> whole, const ledger& shared, const ledger& items);
  memory(memory&&) noexcept;
  memory& operator=(memory&&) noexcept;
  ~memory();

  gpu::device device() const noexcept;
  /// The bytes of an item of the ledger, at a multiple of ledger::alignment from the slab's start, itself aligned to
  /// 256 bytes at least (4096 for host and pinned memory). Throws std::invalid_argument for an unknown name and for
  /// kind host.
  std::span<std::byte> at(memory_kind kind, std::string_view name) const;
  /// Allocated bytes of a kind; 0 for kind host. Constant.
  std::size_t bytes(memory_kind kind) const noexcept;
  const ledger& items() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Copies `bytes` in the order of `stream`; either side may be on the device, host memory should be pinned. Does not
/// block with pinned memory. On the host device it is a memcpy, done when the call returns.
void copy(stream_ref stream, void* to, const void* from, std::size_t bytes);
/// Sets bytes to `value` in the order of `stream`. Does not block.
void fill(stream_ref stream, void* to, int value, std::size_t bytes);

}  // namespace penstock::gpu
