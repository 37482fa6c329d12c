#include "address_driver.hpp"

#include "raw_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace penstock::io {

/// What libhdf5 hands back to the driver; its own part comes first.
struct address_driver::state {
  H5FD_t library{};
  handle<descriptor_traits> fd;
  haddr_t allocated = 0, bytes = 0;
  bool noting = false;
  unsigned reads = 0;
  transfer last;

  static state& of(H5FD_t* file) { return *reinterpret_cast<state*>(file); }
  static const state& of(const H5FD_t* file) { return *reinterpret_cast<const state*>(file); }

  static H5FD_t* open(const char* name, unsigned, hid_t, haddr_t) {
    auto file = std::make_unique<state>();
    file->fd.reset(::open(name, O_RDONLY | O_CLOEXEC));
    if (!file->fd) return nullptr;
    const auto end = ::lseek(file->fd.native(), 0, SEEK_END);
    if (end < 0) return nullptr;
    file->bytes = static_cast<haddr_t>(end);
    return &file.release()->library;
  }

  static herr_t close(H5FD_t* file) {
    delete &of(file);
    return 0;
  }

  static herr_t read(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
    auto& self = of(file);
    if (self.noting && kind == H5FD_MEM_DRAW) {
      self.last = {address, bytes};
      ++self.reads;
      return 0;
    }
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

  static H5FD_class_t driver() {
    H5FD_class_t c{};
    c.name = "penstock-address";
    c.maxaddr = (haddr_t{1} << 62);
    c.fc_degree = H5F_CLOSE_WEAK;
    c.open = open;
    c.close = close;
    c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t { return *flags = 0, 0; };
    c.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; };
    c.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t { return of(file).allocated = end, 0; };
    c.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return of(file).bytes; };
    c.get_handle = [](H5FD_t* file, hid_t, void** out) -> herr_t { return *out = &of(file), 0; };
    c.read = read;
    c.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) -> herr_t { return -1; };
    const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(kinds), std::end(kinds), c.fl_map);
    return c;
  }
};

address_driver::address_driver(const std::filesystem::path& path) {
  const auto driver = state::driver();
  driver_ = checked(H5FDregister(&driver), "a file driver cannot be registered with libhdf5");
  try {
    const property_id access(checked(H5Pcreate(H5P_FILE_ACCESS), "file access properties cannot be made"));
    checked(H5Pset_driver(access.native(), driver_, nullptr), "a file driver cannot be set");
    file_.reset(
        checked(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.native()), "libhdf5 cannot open it through our driver"));
    void* native = nullptr;
    checked(H5Fget_vfd_handle(file_.native(), H5P_DEFAULT, &native), "our file driver cannot be found");
    state_ = static_cast<state*>(native);
  } catch (...) {
    H5FDunregister(driver_);
    throw;
  }
}

address_driver::~address_driver() {
  file_.reset();
  H5FDunregister(driver_);
}

void address_driver::note() noexcept {
  state_->noting = true;
  state_->reads = 0;
}

std::optional<address_driver::transfer> address_driver::noted() noexcept {
  state_->noting = false;
  if (state_->reads != 1) return std::nullopt;
  return state_->last;
}

}  // namespace penstock::io
