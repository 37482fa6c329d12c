#include "read_driver.hpp"

#include "descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>

namespace penstock::io {
namespace {

/// What libhdf5 hands back to the driver; its own part comes first.
struct driver_file {
  H5FD_t library{};
  descriptor fd;
  dev_t device = 0;
  ino_t inode = 0;
  haddr_t allocated = 0, bytes = 0;
  bool noting = false;
  unsigned reads = 0;
  noted_reads::transfer last;
};

/// Process-wide, as libhdf5's table of drivers is.
std::atomic<std::uint64_t>& raw_reads() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

driver_file& of(H5FD_t* file) { return *reinterpret_cast<driver_file*>(file); }
const driver_file& of(const H5FD_t* file) { return *reinterpret_cast<const driver_file*>(file); }

H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t) {
  if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) return nullptr;
  auto file = std::make_unique<driver_file>();
  file->fd.reset(::open(name, O_RDONLY | O_CLOEXEC));
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

herr_t read_file(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  auto& self = of(file);
  if (self.noting && kind == H5FD_MEM_DRAW) {
    self.last = {address, bytes};
    ++self.reads;
    return 0;
  }
  if (kind == H5FD_MEM_DRAW) raw_reads().fetch_add(1, std::memory_order_relaxed);
  auto* to = static_cast<char*>(buffer);
  while (bytes > 0) {
    const auto got = ::pread(self.fd.native(), to, bytes, static_cast<off_t>(address));
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

H5FD_class_t driver_class() {
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 13, 2)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(600);  // from 512 on: drivers that are not registered with the HDF Group
#endif
  c.name = "penstock-read";
  c.maxaddr = haddr_t{1} << 62;
  c.fc_degree = H5F_CLOSE_WEAK;
  c.open = open_file;
  c.close = close_file;
  c.cmp = compare_files;
  c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t { return *flags = 0, 0; };
  c.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; };
  c.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t { return of(file).allocated = end, 0; };
  c.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return of(file).bytes; };
  c.get_handle = [](H5FD_t* file, hid_t, void** out) -> herr_t { return *out = &of(file), 0; };
  c.read = read_file;
  c.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) -> herr_t { return -1; };
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kinds), std::end(kinds), c.fl_map);
  return c;
}

/// libhdf5's table of drivers is process-wide, and so is our entry in it. Files are the same file to libhdf5 only under
/// one entry.
hid_t driver_id() {
  static const hid_t id = [] {
    const auto c = driver_class();
    return checked(H5FDregister(&c), "a file driver cannot be registered with libhdf5");
  }();
  return id;
}

}  // namespace

property_id read_only_access() {
  const library_guard guard;
  property_id access(checked(H5Pcreate(H5P_FILE_ACCESS), "file access properties cannot be made"));
  checked(H5Pset_driver(access.native(), driver_id(), nullptr), "our file driver cannot be set");
  return access;
}

std::uint64_t raw_reads_by_library() noexcept { return raw_reads().load(std::memory_order_relaxed); }

noted_reads::noted_reads(hid_t file) {
  checked(H5Fget_vfd_handle(file, H5P_DEFAULT, &driver_file_), "our file driver cannot be found");
  static_cast<driver_file*>(driver_file_)->noting = true;
  clear();
}

noted_reads::~noted_reads() { static_cast<driver_file*>(driver_file_)->noting = false; }

void noted_reads::clear() noexcept { static_cast<driver_file*>(driver_file_)->reads = 0; }

std::optional<noted_reads::transfer> noted_reads::only() const noexcept {
  const auto& file = *static_cast<const driver_file*>(driver_file_);
  if (file.reads != 1) return std::nullopt;
  return file.last;
}

}  // namespace penstock::io
