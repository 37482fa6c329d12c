#pragma once

#include "byte_source.hpp"
#include "read_world.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace penstock::io {

/// What libhdf5 may open for the external files that the creation properties name: what is there of each name in each
/// folder in which it looks.
std::vector<std::filesystem::path> external_files(hid_t creation, std::size_t files,
                                                  const std::filesystem::path& owner);

/// Throws unreadable where one of the files that the creation properties name is there and no regular file: libhdf5
/// would open a named pipe, and wait without end for who writes to it.
void refuse_special_files(hid_t creation, std::size_t files, const std::filesystem::path& owner);

/// How many of `wanted` bytes, those of a dataset's values, its external files hold as they are now. What is no zeros,
/// but an error when it is read, counts as held: a file that is not there, and bytes that no file is to hold.
std::uint64_t external_bytes_there(hid_t creation, std::size_t files, const std::filesystem::path& owner,
                                   std::uint64_t wanted);

/// The bytes of a contiguous dataset that lie in raw files beside the HDF5 file, one part after the other.
class external_bytes final : public byte_source {
 public:
  /// Finds the files that the creation properties name; relative paths start at the working directory, as in libhdf5.
  /// Throws failure.
  external_bytes(read_world& world, hid_t creation, std::size_t files);

  /// What lies past the end of a file reads as zeros, as in libhdf5; dataset_description::external_shortage tells.
  void read(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const override;

 private:
  struct part {
    std::size_t file = 0;
    std::uint64_t offset = 0, bytes = 0;  // in that file
    std::uint64_t first = 0;              // in the dataset
  };

  read_world& world_;
  std::vector<part> parts_;
};

}  // namespace penstock::io
