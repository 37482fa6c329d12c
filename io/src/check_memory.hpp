#pragma once

#include "filters/decoder.hpp"

#include <penstock/fault.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace penstock::io {

/// Memory in which what libhdf5 is about to read is undone: two halves, from one of which into the other each filter
/// goes. The guard lets one chunk at a time be looked at, so the readers of a field need it once, however many they
/// are. All but the constructor needs the guard.
class check_memory {
 public:
  explicit check_memory(fault_seam faults) : faults_(std::move(faults)) {}

  /// Keeps halves of `half_bytes` each. Throws std::bad_alloc.
  void reserve(std::size_t half_bytes);

  struct halves {
    std::span<std::byte> stored, other;
    std::unique_ptr<std::byte[]> taken;  ///< null where they are what is kept
  };
  /// Halves of `half_bytes` each: what is kept, or where that is too small, memory taken for the time being. Throws
  /// std::bad_alloc.
  halves borrow(std::size_t half_bytes);

  /// For decoders that need no memory of their own. Throws std::bad_alloc.
  decode_workspace& workspace();

  /// For a decoder that needs `extra_bytes` of its own, for the time being. Throws std::bad_alloc.
  std::unique_ptr<decode_workspace> take_workspace(std::size_t extra_bytes) const;

 private:
  std::unique_ptr<std::byte[]> take(std::size_t half_bytes) const;

  fault_seam faults_;
  std::size_t half_bytes_ = 0;
  std::unique_ptr<std::byte[]> kept_;
  std::unique_ptr<decode_workspace> workspace_;
};

}  // namespace penstock::io
