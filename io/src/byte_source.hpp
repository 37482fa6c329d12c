#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// Bytes by position. Thread-safe.
class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Fills `out` from `offset` on. Throws failure.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

}  // namespace penstock::io
