#include "driver_file.hpp"

#include "system_call.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <tuple>

namespace penstock::io {
namespace {

const driver_file& of(const H5FD_t* file) { return *reinterpret_cast<const driver_file*>(file); }

int compare_files(const H5FD_t* a, const H5FD_t* b) {
  const auto x = std::tuple(of(a).device, of(a).inode), y = std::tuple(of(b).device, of(b).inode);
  return x < y ? -1 : x == y ? 0 : 1;
}

}  // namespace

bool driver_file::open(const char* name, int flags) {
  fd = open_descriptor(name, flags, 0666, faults, asked_about);
  struct stat status {};
  if (!fd || ::fstat(fd.native(), &status) != 0) return false;
  device = status.st_dev;
  inode = status.st_ino;
  bytes = static_cast<haddr_t>(status.st_size);
  return true;
}

herr_t read_driver_file(const driver_file& file, haddr_t address, std::size_t bytes, void* buffer, past_end after) {
  auto* to = static_cast<char*>(buffer);
  while (bytes > 0) {
    const auto got = past_signals(
        {file.faults, fault_site::read_file, file.asked_about, address, bytes},
        [&](std::size_t most) { return ::pread(file.fd.native(), to, most, static_cast<off_t>(address)); });
    if (got < 0) return -1;
    if (got == 0 && after == past_end::failure) return errno = 0, -1;
    if (got == 0) {
      std::memset(to, 0, bytes);
      return 0;
    }
    to += got;
    address += static_cast<haddr_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
}

H5FD_class_t driver_class_of(const char* name, [[maybe_unused]] int number) noexcept {
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 13, 2)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(number);
#endif
  c.name = name;
  c.maxaddr = haddr_t{1} << 62;
  c.fc_degree = H5F_CLOSE_WEAK;
  c.cmp = compare_files;
  c.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; };
  c.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t {
    return driver_file_of<driver_file>(file).allocated = end, 0;
  };
  c.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return of(file).bytes; };
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kinds), std::end(kinds), c.fl_map);
  return c;
}

}  // namespace penstock::io
