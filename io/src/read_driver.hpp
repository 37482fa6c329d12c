#pragma once

#include "identifier.hpp"

#include <penstock/fault.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace penstock::io {

/// File access properties with a file driver of our own: positioned reads, no writing, and no locks at all.
///
/// libhdf5's POSIX driver can be told not to lock, but HDF5 1.10 forgets that for files which it opens itself (sources
/// of virtual datasets), refuses a file that is open with another such setting, and then gives fill values for the
/// source without an error. A driver that knows no locks is passed on to those files, and every file has the same
/// setting.
///
/// `faults` is asked at open_file and read_file before each call of the system; it must live until the file is open,
/// which keeps it. Files that libhdf5 opens itself do not ask.
property_id read_only_access(const fault_seam& faults = {});

/// How often libhdf5 read raw data (values, not metadata) through the driver since the program began, lookups by
/// noted_reads not counted. Thread-safe.
std::uint64_t raw_reads_by_library() noexcept;

/// The errno of a read through the driver that failed (0: past the file's end), or of a file that did not open, on this
/// thread since this was asked: the first that is none of absence, or else the last. 0 after that.
int take_driver_error() noexcept;

/// Whether an errno of opening says that there is no such file to be read: 0, it is no HDF5 file, or the name leads to
/// none, to a folder, or to what may not be read. All else (EIO, EMFILE, ESTALE) says nothing of what is there.
bool is_absence(int system) noexcept;

/// That a read of the system failed, and what libhdf5 was about to do, in a sentence.
std::string why_unread(int system, const std::string& messages);

/// After a read that libhdf5 calls a success: throws failure where since take_driver_error() a file did not open, or
/// was not read, for another reason than is_absence(). Of virtual datasets libhdf5 gives fill values for such sources.
void refuse_unopened_sources();

/// Notes the names of the files that are opened through the driver on this thread, whoever asks: external links lead
/// through files of which no open object tells. At most one at a time. Needs the library guard.
class noted_files {
 public:
  noted_files() noexcept;
  ~noted_files();
  noted_files(const noted_files&) = delete;
  noted_files& operator=(const noted_files&) = delete;

  std::set<std::string> names;
};

/// Notes where libhdf5 reads raw data of a file that was opened with read_only_access, and skips the transfer, but for
/// the first `front_bytes`: then H5Dread_chunk is a lookup of a chunk's address, and unlike H5Dget_chunk_info of HDF5
/// 1.10 one that does not scan.
/// Every call needs the library guard, from the constructor to the destructor.
class noted_reads {
 public:
  explicit noted_reads(hid_t file, std::size_t front_bytes = 0);
  ~noted_reads();
  noted_reads(const noted_reads&) = delete;
  noted_reads& operator=(const noted_reads&) = delete;

  struct transfer {
    std::uint64_t address = 0, bytes = 0;
  };
  void clear() noexcept;
  /// The read since clear(); nothing where there was none, or more than one.
  std::optional<transfer> only() const noexcept;

 private:
  void* driver_file_ = nullptr;  // libhdf5 owns it, with the file
};

}  // namespace penstock::io
