#include "write_driver.hpp"

#include "driver_file.hpp"
#include "system_call.hpp"
#include "write_at.hpp"

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

  /// The first error is the one that is told.
  void failed(int code) const noexcept {
    if (outcome->error == 0) outcome->error = code;
  }
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
  file->asked_about = info->outcome->path;
  file->faults = info->outcome->faults;
  if (file->open(name, how)) return &file.release()->library;
  file->failed(errno);  // and stays, should libhdf5 try again with other flags: the file is there
  return nullptr;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  return read_driver_file(of(file), address, bytes, buffer);
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* buffer) {
  auto& self = of(file);
  self.bytes = std::max(self.bytes, address + bytes);
  if (self.outcome->error == 0)
    self.failed(
        write_at(self.fd.native(), address, {static_cast<const char*>(buffer), bytes}, self.faults, self.asked_about));
  return 0;
}

/// The file ends where libhdf5's allocations do.
herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  auto& self = of(file);
  const auto cut = [&](std::size_t) { return ::ftruncate(self.fd.native(), static_cast<off_t>(self.allocated)); };
  const call_site here{self.faults, fault_site::write_file, self.asked_about, self.allocated};
  if (self.outcome->error == 0 && past_signals(here, cut) != 0) self.failed(errno);
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
