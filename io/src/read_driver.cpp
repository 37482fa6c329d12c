#include "read_driver.hpp"

#include "driver_file.hpp"

#include <fcntl.h>

#include <atomic>
#include <memory>

namespace penstock::io {
namespace {

struct noting_file : driver_file {
  bool noting = false;
  unsigned reads = 0;
  noted_reads::transfer last;
};

/// Process-wide, as libhdf5's table of drivers is.
std::atomic<std::uint64_t>& raw_reads() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

noting_file& of(H5FD_t* file) { return driver_file_of<noting_file>(file); }

H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t) {
  if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) return nullptr;
  auto file = std::make_unique<noting_file>();
  if (!file->open(name, O_RDONLY)) return nullptr;
  return &file.release()->library;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  auto& self = of(file);
  if (self.noting && kind == H5FD_MEM_DRAW) {
    self.last = {address, bytes};
    ++self.reads;
    return 0;
  }
  if (kind == H5FD_MEM_DRAW) raw_reads().fetch_add(1, std::memory_order_relaxed);
  return read_driver_file(self, address, bytes, buffer);
}

H5FD_class_t driver_class() {
  auto c = driver_class_of("penstock-read", 600);
  c.open = open_file;
  c.close = [](H5FD_t* file) -> herr_t { return delete &of(file), 0; };
  c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t { return *flags = 0, 0; };
  c.get_handle = [](H5FD_t* file, hid_t, void** out) -> herr_t { return *out = &of(file), 0; };
  c.read = read_file;
  c.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) -> herr_t { return -1; };
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
  static_cast<noting_file*>(driver_file_)->noting = true;
  clear();
}

noted_reads::~noted_reads() { static_cast<noting_file*>(driver_file_)->noting = false; }

void noted_reads::clear() noexcept { static_cast<noting_file*>(driver_file_)->reads = 0; }

std::optional<noted_reads::transfer> noted_reads::only() const noexcept {
  const auto& file = *static_cast<const noting_file*>(driver_file_);
  if (file.reads != 1) return std::nullopt;
  return file.last;
}

}  // namespace penstock::io
