#pragma once

#include "byte_source.hpp"
#include "open_hdf5.hpp"

#include <penstock/fault.hpp>

#include <cstdint>
#include <filesystem>
#include <span>

namespace penstock::io {

struct descriptor_traits {
  using native_type = int;
  static int empty() noexcept { return -1; }
  static void release(int fd) noexcept;
};

/// A file read at positions, from many threads at once, without libhdf5.
class raw_file final : public byte_source {
 public:
  /// Throws failure, also where the file is not the one that `expected` describes.
  raw_file(std::filesystem::path path, const file_identity& expected, fault_seam faults);

  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Fills `out` from `offset` on, whatever the pieces in which the system gives it. Throws failure: an error of the
  /// system, or the file ends early.
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::filesystem::path path_;
  fault_seam faults_;
  handle<descriptor_traits> fd_;
  std::uint64_t bytes_ = 0;
};

/// Identity of an open descriptor.
file_identity identity_of(int fd);

}  // namespace penstock::io
