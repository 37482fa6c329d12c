#include "write_driver.hpp"

#include "descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>

namespace penstock::io {
namespace {

/// What libhdf5 copies with file access properties.
struct driver_info {
  write_outcome* outcome;
};

/// What libhdf5 hands back to the driver; its own part comes first.
struct driver_file {
  H5FD_t library{};
  descriptor fd;
  write_outcome* outcome = nullptr;
  dev_t device = 0;
  ino_t inode = 0;
  haddr_t allocated = 0, bytes = 0;
};

driver_file& of(H5FD_t* file) { return *reinterpret_cast<driver_file*>(file); }
const driver_file& of(const H5FD_t* file) { return *reinterpret_cast<const driver_file*>(file); }

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  const auto* info = static_cast<const driver_info*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  int how = flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY;
  if (flags & H5F_ACC_TRUNC) how |= O_TRUNC;
  if (flags & H5F_ACC_CREAT) how |= O_CREAT;
  auto file = std::make_unique<driver_file>();
  file->outcome = info->outcome;
  file->fd.reset(::open(name, how | O_CLOEXEC, 0666));
  struct stat status {};
  if (!file->fd || ::fstat(file->fd.native(), &status) != 0) return nullptr;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->bytes = static_cast<haddr_t>(status.st_size);
  return &file.release()->library;
}

herr_t close_file(H5FD_t* file) {
  delete &of(file);
  return 0;
}

int compare_files(const H5FD_t* a, const H5FD_t* b) {
  const auto x = std::tuple(of(a).device, of(a).inode), y = std::tuple(of(b).device, of(b).inode);
  return x < y ? -1 : x == y ? 0 : 1;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  auto* to = static_cast<char*>(buffer);
  while (bytes > 0) {
    const auto got = ::pread(of(file).fd.native(), to, bytes, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) {  // past the end libhdf5's own drivers give zeros
      std::memset(to, 0, bytes);
      return 0;
    }
    to += got;
    address += static_cast<haddr_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
}

/// What one write of the system takes, past signals; errno in `error` where it fails.
std::size_t write_some(const driver_file& self, haddr_t address, std::size_t bytes, const char* from, int& error) {
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
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 13, 2)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(601);  // from 512 on: drivers that are not registered with the HDF Group
#endif
  c.name = "penstock-write";
  c.maxaddr = haddr_t{1} << 62;
  c.fc_degree = H5F_CLOSE_WEAK;
  c.fapl_size = sizeof(driver_info);
  c.open = open_file;
  c.close = close_file;
  c.cmp = compare_files;
  c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
  };
  c.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; };
  c.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t { return of(file).allocated = end, 0; };
  c.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return of(file).bytes; };
  c.read = read_file;
  c.write = write_file;
  c.truncate = truncate_file;
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kinds), std::end(kinds), c.fl_map);
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
