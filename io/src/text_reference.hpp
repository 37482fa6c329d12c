#pragma once

#include "identifier.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// How a file writes addresses and lengths.
struct address_format {
  std::size_t offset_bytes = 8, length_bytes = 8;
  std::uint64_t base = 0;  ///< the byte of the file that addresses count from

  std::size_t reference_bytes() const noexcept { return 4 + offset_bytes + 4; }
};

/// Throws failure, also where numbers of the file have more than 8 bytes.
address_format address_format_of(hid_t file);

/// What is stored for a text of variable length: its length, and the object of the global heap that it is, as the
/// address of a collection and an index in it (HDF5 File Format Specification 3.0, III.E and IV.B).
struct text_reference {
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t index = 0;
  bool operator==(const text_reference&) const = default;

  /// What HDF5 writes for no text, and for an empty one. (An address of 0 alone may be a damaged one.)
  bool is_empty() const noexcept { return bytes == 0 && address == 0 && index == 0; }
};

/// Of format.reference_bytes() bytes.
text_reference decode_reference(std::span<const std::byte> stored, const address_format& format) noexcept;

/// An unsigned number of up to 8 bytes, as HDF5 stores it: little-endian.
std::uint64_t decode_number(std::span<const std::byte> stored) noexcept;

/// A type of memory in which libhdf5 gives references to texts as they are stored, in H5Dread and H5Aread, and does not
/// follow them: H5HG_read (HDF5 1.10 to 1.14) trusts lengths and indices, and reads and writes past its memory where
/// one is wrong. `bytes`: address_format::reference_bytes(). Needs the guard.
///
/// The type is opaque and has a tag of ours; to it leads a conversion that this registers with libhdf5, process-wide,
/// when it is called first. HDF5 itself has none from texts to opaque values.
type_id reference_memory(std::size_t bytes);

}  // namespace penstock::io
