#pragma once

#include "identifier.hpp"

#include <penstock/fault.hpp>

#include <cstdint>
#include <filesystem>

namespace penstock::io {

/// What says that a path still names the file that was opened before.
struct file_identity {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_seconds = 0, modified_nanoseconds = 0;
  bool operator==(const file_identity&) const = default;
};

/// Opens the file for reading, without locks (read_driver.hpp says how). Throws failure with one sentence.
/// `faults` is asked at open_file, and at read_file as long as the file is open.
file_id open_hdf5(const std::filesystem::path& path, const fault_seam& faults = {});

/// The file as it is now. Throws failure where it is missing, not readable or no regular file.
file_identity identify(const std::filesystem::path& path);

/// Looks at the file without libhdf5: throws failure where it is missing, not readable, no regular file, or not HDF5.
/// `opening` is asked at open_file, `reading` at read_file.
file_identity probe(const std::filesystem::path& path, const fault_seam& opening = {}, const fault_seam& reading = {});

}  // namespace penstock::io
