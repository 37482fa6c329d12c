#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// Bytes by position. Thread-safe.
class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Fills `out` from `offset` on. Throws failure. `bounce`: aligned memory of this read alone, for reads around the
  /// page cache; may be empty.
  virtual void read(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const = 0;
};

}  // namespace penstock::io
