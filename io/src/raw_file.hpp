#pragma once

#include "byte_source.hpp"
#include "descriptor.hpp"
#include "open_hdf5.hpp"

#include <penstock/fault.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace penstock::io {

/// How a file is read.
enum class caching : std::uint8_t {
  page_cache,
  around  ///< O_DIRECT, where the file system allows it
};

/// Bytes to which O_DIRECT wants file offsets, lengths and memory aligned: the largest sector that disks have.
inline constexpr std::size_t direct_alignment = 4096;

/// A file read at positions, from many threads at once, without libhdf5.
class raw_file final : public byte_source {
 public:
  /// Throws failure, also where the file is not the one that `expected` describes.
  raw_file(std::filesystem::path path, const file_identity& expected, fault_seam faults,
           caching how = caching::page_cache);

  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Why caching::around was not possible; empty where it is, or was not asked for.
  const std::string& why_cached() const noexcept { return why_cached_; }

  /// Fills `out` from `offset` on, whatever the pieces in which the system gives it. Throws failure: an error of the
  /// system, or the file ends early. Goes around the page cache where that was asked for and `bounce` (aligned) is at
  /// least direct_alignment long.
  void read(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const override;

 private:
  void open_around_cache();
  std::size_t read_some(int fd, std::uint64_t offset, std::span<std::byte> out) const;
  void read_cached(std::uint64_t offset, std::span<std::byte> out) const;
  void read_around_cache(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const;

  std::filesystem::path path_;
  fault_seam faults_;
  descriptor fd_, direct_;
  std::string why_cached_;
  std::uint64_t bytes_ = 0;
};

/// Identity of an open descriptor.
file_identity identity_of(int fd);

}  // namespace penstock::io
