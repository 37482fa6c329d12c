#include "write_driver.hpp"

#include "driver_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace penstock::io {
namespace {

/// What libhdf5 copies with file access properties.
struct driver_info {
  write_outcome* outcome;
};

struct written_file : driver_file {
  write_outcome* outcome = nullptr;
};

written_file& of(H5FD_t* file) { return driver_file_of<written_file>(file); }

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  const auto* info = static_cast<const driver_info*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  int how = flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY;
  if (flags & H5F_ACC_TRUNC) how |= O_TRUNC;
  if (flags & H5F_ACC_CREAT) how |= O_CREAT;
  auto file = std::make_unique<written_file>();
  file->outcome = info->outcome;
  const bool opened = file->open(name, how);
  info->outcome->error = opened ? 0 : errno;  // libhdf5 tries again with other flags
  if (!opened) return nullptr;
  return &file.release()->library;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  return read_driver_file(of(file), address, bytes, buffer);
}

/// What one write of the system takes, past signals; errno in `error` where it fails.
std::size_t write_some(const written_file& self, haddr_t address, std::size_t bytes, const char* from, int& error) {
  for (;;) {
    std::size_t wanted = bytes;
    if (const auto& faults = self.outcome->faults) {
      const fault f = faults->before(fault_site::write_file, self.outcome->path, address, bytes);
      if (f.error == EINTR) continue;
      if (f.error != 0) return error = f.error, 0;
      wanted = std::clamp<std::size_t>(f.at_most, 1, bytes);
    }
    const auto put = ::pwrite(self.fd.native(), from, wanted, static_cast<off_t>(address));
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno != EINTR) return error = errno, 0;
  }
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* buffer) {
  auto& self = of(file);
  self.bytes = std::max(self.bytes, address + bytes);
  const auto* from = static_cast<const char*>(buffer);
  while (bytes > 0 && self.outcome->error == 0) {
    const std::size_t put = write_some(self, address, bytes, from, self.outcome->error);
    from += put;
    address += put;
    bytes -= put;
  }
  return 0;
}

/// The file ends where libhdf5's allocations do.
herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  auto& self = of(file);
  if (self.outcome->error == 0 && ::ftruncate(self.fd.native(), static_cast<off_t>(self.allocated)) != 0)
    self.outcome->error = errno;
  self.bytes = self.allocated;
  return 0;
}

H5FD_class_t driver_class() {
  auto c = driver_class_of("penstock-write", 601);
  c.fapl_size = sizeof(driver_info);
  c.open = open_file;
  c.close = [](H5FD_t* file) -> herr_t { return delete &of(file), 0; };
  c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
  };
  c.read = read_file;
  c.write = write_file;
  c.truncate = truncate_file;
  return c;
}

/// libhdf5's table of drivers is process-wide, and so is our entry in it.
hid_t driver_id() {
  static const hid_t id = [] {
    const auto c = driver_class();
    return checked(H5FDregister(&c), "a file driver cannot be registered with libhdf5");
  }();
  return id;
}

}  // namespace

property_id write_access(write_outcome& outcome) {
  const library_guard guard;
  property_id access(checked(H5Pcreate(H5P_FILE_ACCESS), "file access properties cannot be made"));
  const driver_info info{&outcome};
  checked(H5Pset_driver(access.native(), driver_id(), &info), "our file driver cannot be set");
  return access;
}

}  // namespace penstock::io
