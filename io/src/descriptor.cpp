#include "descriptor.hpp"

#include "system_call.hpp"

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

descriptor open_descriptor(const char* path, int flags, unsigned mode, const fault_seam& faults,
                           std::string_view file) {
  return descriptor(past_signals({faults, fault_site::open_file, file.empty() ? path : file},
                                 [&](std::size_t) { return ::open(path, flags | O_CLOEXEC, mode); }));
}

std::string not_opened(int code) {
  const std::string_view hint = open_hint(code);
  return hint.empty() ? fmt::format("it cannot be opened: {}", std::generic_category().message(code))
                      : std::string(hint);
}

}  // namespace penstock::io
