#include "read_driver.hpp"

#include "driver_file.hpp"
#include "failure.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

namespace penstock::io {
namespace {

/// What libhdf5 copies with file access properties.
struct driver_info {
  const fault_seam* faults;  // null where there are none
};

struct noting_file;

/// What libhdf5 gets for a handle: the number of the open file, as from its own drivers, by which it finds what a
/// symbolic link leads to. Behind it, for us, the file.
struct file_handle {
  int number = -1;
  noting_file* file = nullptr;
};

struct noting_file : driver_file {
  file_handle handle;
  bool noting = false;
  std::size_t front_bytes = 0;
  unsigned reads = 0;
  noted_reads::transfer last;
};

/// Process-wide, as libhdf5's table of drivers is.
std::atomic<std::uint64_t>& raw_reads() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

/// libhdf5 passes on that its driver failed, not why.
int& driver_error() noexcept {
  thread_local int code = 0;
  return code;
}

/// The first that is none of absence stays: libhdf5 tries other names after a file that does not open.
void note_error(int code) noexcept {
  if (is_absence(driver_error())) driver_error() = code;
}

noted_files*& file_notes() noexcept {
  thread_local noted_files* notes = nullptr;
  return notes;
}

noting_file& of(H5FD_t* file) { return driver_file_of<noting_file>(file); }

noting_file& behind(void* handle) { return *static_cast<file_handle*>(handle)->file; }

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) return nullptr;
  auto file = std::make_unique<noting_file>();
  if (const auto* info = static_cast<const driver_info*>(H5Pget_driver_info(access)); info && info->faults) {
    file->asked_about = name;
    file->faults = *info->faults;
  }
  if (!file->open(name, O_RDONLY | O_NONBLOCK)) {  // it may have become a pipe
    note_error(errno);
    return nullptr;
  }
  file->handle = {file->fd.native(), file.get()};
  if (file_notes() != nullptr) file_notes()->names.insert(name);
  return &file.release()->library;
}

/// libhdf5 opens no file that is shorter than what it says: where values end, it was cut since. What is no value may be
/// read further than it goes.
past_end past_end_of(H5FD_mem_t kind) noexcept { return kind == H5FD_MEM_DRAW ? past_end::failure : past_end::zeros; }

herr_t read_file(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
  auto& self = of(file);
  if (self.noting && kind == H5FD_MEM_DRAW) {
    self.last = {address, bytes};
    ++self.reads;
    bytes = std::min(bytes, self.front_bytes);
    if (bytes == 0) return 0;
  } else if (kind == H5FD_MEM_DRAW) {
    raw_reads().fetch_add(1, std::memory_order_relaxed);
  }
  const herr_t done = read_driver_file(self, address, bytes, buffer, past_end_of(kind));
  if (done < 0) note_error(errno);
  if (done >= 0 && self.faults)
    self.faults->after_read(self.asked_about, address, {static_cast<std::byte*>(buffer), bytes});
  return done;
}

H5FD_class_t driver_class() {
  auto c = driver_class_of("penstock-read", 600);
  c.fapl_size = sizeof(driver_info);
  c.open = open_file;
  c.close = [](H5FD_t* file) -> herr_t { return delete &of(file), 0; };
  c.query = [](const H5FD_t*, unsigned long* flags) -> herr_t { return *flags = H5FD_FEAT_POSIX_COMPAT_HANDLE, 0; };
  // Nothing is locked; but only where a driver can, libhdf5 refuses files that are marked as open for writing.
  c.lock = [](H5FD_t*, hbool_t) -> herr_t { return 0; };
  c.unlock = [](H5FD_t*) -> herr_t { return 0; };
  c.get_handle = [](H5FD_t* file, hid_t, void** out) -> herr_t { return *out = &of(file).handle, 0; };
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

property_id read_only_access(const fault_seam& faults) {
  const library_guard guard;
  property_id access(checked(H5Pcreate(H5P_FILE_ACCESS), "file access properties cannot be made"));
  const driver_info info{faults ? &faults : nullptr};
  checked(H5Pset_driver(access.native(), driver_id(), &info), "our file driver cannot be set");
  return access;
}

int take_driver_error() noexcept { return std::exchange(driver_error(), 0); }

bool is_absence(int system) noexcept {
  switch (system) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EACCES:
    case EPERM: return true;
    default: return false;
  }
}

std::string why_unread(int system, const std::string& messages) {
  return fmt::format("reading the file failed: {} (libhdf5: {})", std::strerror(system),
                     messages.substr(messages.rfind('\n') + 1));
}

void refuse_unopened_sources() {
  const int system = take_driver_error();
  if (!is_absence(system))
    throw failure(fmt::format("libhdf5 cannot open a file of its sources: {}", std::strerror(system)), system);
}

std::uint64_t raw_reads_by_library() noexcept { return raw_reads().load(std::memory_order_relaxed); }

noted_files::noted_files() noexcept { file_notes() = this; }

noted_files::~noted_files() { file_notes() = nullptr; }

noted_reads::noted_reads(hid_t file, std::size_t front_bytes) {
  checked(H5Fget_vfd_handle(file, H5P_DEFAULT, &driver_file_), "our file driver cannot be found");
  behind(driver_file_).noting = true;
  behind(driver_file_).front_bytes = front_bytes;
  clear();
}

noted_reads::~noted_reads() { behind(driver_file_).noting = false; }

void noted_reads::clear() noexcept { behind(driver_file_).reads = 0; }

std::optional<noted_reads::transfer> noted_reads::only() const noexcept {
  const auto& file = behind(driver_file_);
  if (file.reads != 1) return std::nullopt;
  return file.last;
}

}  // namespace penstock::io
