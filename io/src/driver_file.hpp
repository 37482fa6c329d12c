#pragma once

#include "descriptor.hpp"
#include "identifier.hpp"

#include <H5FDpublic.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

namespace penstock::io {

/// An open file of our file drivers, as libhdf5 holds it. Drivers derive from it what more they keep.
struct driver_file {
  H5FD_t library{};  // libhdf5's own part comes first: its pointer is ours
  descriptor fd;
  dev_t device = 0;
  ino_t inode = 0;
  haddr_t allocated = 0, bytes = 0;
  std::string asked_about{};  ///< the file that `faults` is asked about
  fault_seam faults{};        ///< asked before each call of the system

  /// Opens `name` with flags of open(2); false, with errno, where the system refuses.
  bool open(const char* name, int flags);
};

template <class File>
File& driver_file_of(H5FD_t* file) noexcept {
  return static_cast<File&>(*reinterpret_cast<driver_file*>(file));
}

/// What a read past the file's end gives; libhdf5's own drivers give zeros.
enum class past_end { zeros, failure };

/// Reads at a position, in as many pieces as the system gives. Negative where it fails, with errno; 0 in it: the file
/// ends.
herr_t read_driver_file(const driver_file& file, haddr_t address, std::size_t bytes, void* buffer,
                        past_end after = past_end::zeros);

/// What our drivers have in common: files told apart by device and inode, ends by `allocated` and `bytes`, no locks.
/// The rest is for the driver to fill in. `number`: unique among drivers, 512 or more.
H5FD_class_t driver_class_of(const char* name, int number) noexcept;

}  // namespace penstock::io
