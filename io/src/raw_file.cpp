#include "raw_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace penstock::io {
namespace {

constexpr std::size_t largest_read = std::size_t{1} << 30;  // Linux moves at most 2 GiB less a page at once

[[noreturn]] void read_failed(int code) {
  throw failure(fmt::format("reading the file failed: {}", std::strerror(code)), code);
}

}  // namespace

void descriptor_traits::release(int fd) noexcept { ::close(fd); }

file_identity identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw failure("its size cannot be read", errno);
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

raw_file::raw_file(std::filesystem::path path, const file_identity& expected, fault_seam faults)
    : path_(std::move(path)), faults_(std::move(faults)) {
  if (faults_)
    if (const fault f = faults_->before(fault_site::open_file, path_.native(), 0, 0); f.error != 0)
      throw failure(fmt::format("it cannot be opened: {}", std::strerror(f.error)), f.error);
  fd_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_) throw failure(fmt::format("it cannot be opened: {}", std::strerror(errno)), errno);
  const auto found = identity_of(fd_.native());
  if (found != expected) throw failure("it was changed or replaced while it was being read; open it anew");
  bytes_ = found.bytes;
}

void raw_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  const auto first = offset;
  for (auto left = out; !left.empty();) {
    std::size_t wanted = std::min(left.size(), largest_read);
    if (faults_) {
      const fault f = faults_->before(fault_site::read_file, path_.native(), offset, wanted);
      if (f.delay.count() > 0) std::this_thread::sleep_for(f.delay);
      if (f.error == EINTR) continue;
      if (f.error != 0) read_failed(f.error);
      wanted = std::min(wanted, f.at_most);
    }
    const auto got = wanted == 0 ? 0 : ::pread(fd_.native(), left.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) read_failed(errno);
    if (got == 0)
      throw failure(
          fmt::format("the file ends at byte {}, where {} more are needed; it is truncated: copy or write it again",
                      offset, left.size()));
    offset += static_cast<std::uint64_t>(got);
    left = left.subspan(static_cast<std::size_t>(got));
  }
  if (faults_) faults_->after_read(path_.native(), first, out);
}

}  // namespace penstock::io
