#include "descriptor.hpp"

#include "failure.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace penstock::io {

void descriptor_traits::release(int fd) noexcept { ::close(fd); }

descriptor open_descriptor(const char* path, int flags, unsigned mode) noexcept {
  int fd = -1;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return descriptor(fd);
}

void ask_to_open(const fault_seam& faults, const std::filesystem::path& path) {
  if (!faults) return;
  int code = 0;
  do code = faults->before(fault_site::open_file, path.native(), 0, 0).error;
  while (code == EINTR);
  if (code != 0) throw failure(fmt::format("it cannot be opened: {}", std::generic_category().message(code)), code);
}

}  // namespace penstock::io
