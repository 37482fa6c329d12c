#pragma once

#include <penstock/fault.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

namespace penstock::io {

/// What the seam is told of a call of the system.
struct call_site {
  const fault_seam& faults;
  fault_site site;
  std::string_view file;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// A call of the system, made again for as long as signals interrupt it. `call(bytes)` gives -1, and errno, where it
/// fails. The seam stands where the call does: it is asked before each try, and its error is that of the call.
///
/// Not for close(): POSIX leaves it open whether a descriptor is closed where a signal interrupts that; Linux closes
/// it, and a second close() would be of what another thread opened meanwhile. What was written is safe by fsync(), not
/// by close(). rename() is not interrupted on local file systems. On others it may have been done by then: made again,
/// it says ENOENT, an error of a file that is in its place.
template <class Call>
auto past_signals(const call_site& at, Call&& call) {
  for (;;) {
    const fault f = at.faults ? at.faults->before(at.site, at.file, at.offset, at.bytes) : fault{};
    if (f.delay.count() > 0) std::this_thread::sleep_for(f.delay);
    using outcome = decltype(call(at.bytes));
    errno = f.error;
    const outcome got = f.error != 0 ? outcome{-1} : call(std::min(at.bytes, f.at_most));
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace penstock::io
