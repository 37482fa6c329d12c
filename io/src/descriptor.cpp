#include "descriptor.hpp"

#include "failure.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace penstock::io {
namespace {

std::string_view open_hint(int code) {
  switch (code) {
    case ENOENT: return "there is no such file; check the path";
    case EACCES: return "no permission to read it; check its mode and its folders'";
    case ENOTDIR: return "a part of its path is no folder; check the path";
    case ELOOP: return "its symbolic links lead in a circle";
    case EMFILE:
    case ENFILE: return "too many files are open; raise the limit (ulimit -n) or hold fewer open";
    case ENAMETOOLONG: return "its path is too long";
    default: return {};
  }
}

}  // namespace

void descriptor_traits::release(int fd) noexcept { ::close(fd); }

descriptor open_descriptor(const char* path, int flags, unsigned mode) noexcept {
  int fd = -1;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return descriptor(fd);
}

std::string not_opened(int code) {
  const std::string_view hint = open_hint(code);
  return hint.empty() ? fmt::format("it cannot be opened: {}", std::generic_category().message(code))
                      : std::string(hint);
}

void ask_to_open(const fault_seam& faults, const std::filesystem::path& path) {
  if (!faults) return;
  int code = 0;
  do code = faults->before(fault_site::open_file, path.native(), 0, 0).error;
  while (code == EINTR);
  if (code != 0) throw failure(not_opened(code), code);
}

}  // namespace penstock::io
