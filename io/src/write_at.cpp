#include "write_at.hpp"

#include "system_call.hpp"

#include <unistd.h>

#include <cerrno>

namespace penstock::io {

int write_at(int fd, std::uint64_t offset, std::string_view bytes, const fault_seam& faults, std::string_view file) {
  while (!bytes.empty()) {
    const auto put = past_signals({faults, fault_site::write_file, file, offset, bytes.size()}, [&](std::size_t most) {
      return ::pwrite(fd, bytes.data(), most, static_cast<off_t>(offset));
    });
    if (put < 0) return errno;
    if (put == 0) return ENOSPC;  // nothing was taken, and nothing said why: it would be asked without end
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

}  // namespace penstock::io
