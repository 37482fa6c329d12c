#include "raw_file.hpp"

#include "fast_copy.hpp"
#include "system_call.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock::io {
namespace {

constexpr std::size_t largest_read = std::size_t{1} << 30;  // Linux moves at most 2 GiB less a page at once

[[noreturn]] void read_failed(int code) {
  const auto sentence = fmt::format("reading the file failed: {}", std::strerror(code));
  if (code == EIO) throw damage(sentence, code);
  throw failure(sentence, code);
}

}  // namespace

file_identity identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw failure("its size cannot be read", errno);
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

raw_file::raw_file(std::filesystem::path path, const file_identity& expected, fault_seam faults, caching how)
    : path_(std::move(path)), faults_(std::move(faults)) {
  fd_ = open_descriptor(path_.c_str(), O_RDONLY | O_NONBLOCK, 0, faults_);  // it may have become a pipe
  if (!fd_) {
    const int code = errno;
    throw failure(not_opened(code), code);
  }
  const auto found = identity_of(fd_.native());
  if (found != expected) throw failure("it was changed or replaced while it was being read; open it anew", ESTALE);
  bytes_ = found.bytes;
  if (how == caching::around) open_around_cache();
}

/// Some file systems refuse at open, some at the first read, where they want a coarser alignment.
void raw_file::open_around_cache() {
  direct_ = open_descriptor(path_.c_str(), O_RDONLY | O_DIRECT | O_NONBLOCK, 0, faults_);
  const auto opened = direct_ ? identity_of(direct_.native()) : file_identity{};
  struct alignas(direct_alignment) {
    std::byte bytes[direct_alignment];
  } block;
  const auto reads = [&] {
    return past_signals({faults_, fault_site::read_file, path_.native(), 0, direct_alignment},
                        [&](std::size_t bytes) { return ::pread(direct_.native(), block.bytes, bytes, 0); }) >= 0;
  };
  if (direct_ && opened == identity_of(fd_.native()) && reads()) return;
  why_cached_ = fmt::format("its file system refuses O_DIRECT ({})", std::strerror(errno));
  direct_.reset();
}

void raw_file::read(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const {
  if (direct_ && bounce.size() >= direct_alignment)
    read_around_cache(offset, out, bounce);
  else
    read_cached(offset, out);
  if (faults_) faults_->after_read(path_.native(), offset, out);
}

/// What one read of the system gives, past signals; 0 at the file's end.
std::size_t raw_file::read_some(int fd, std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t most = std::min(out.size(), largest_read);
  const auto got = past_signals({faults_, fault_site::read_file, path_.native(), offset, most}, [&](std::size_t bytes) {
    return ::pread(fd, out.data(), bytes, static_cast<off_t>(offset));
  });
  if (got >= 0) return static_cast<std::size_t>(got);
  if (errno == EINVAL && fd == direct_.native()) return 0;  // not aligned as it should be: read through the cache
  read_failed(errno);
}

void raw_file::read_cached(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto got = read_some(fd_.native(), offset, out);
    if (got == 0)
      throw damage(fmt::format(
          "{} bytes from byte {} on are needed, but the file ends at byte {}: it is truncated; copy or write "
          "it again",
          out.size(), offset, identity_of(fd_.native()).bytes));
    offset += got;
    out = out.subspan(got);
  }
}

void raw_file::read_around_cache(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const {
  const auto most = bounce.size() / direct_alignment * direct_alignment;
  while (!out.empty()) {
    const std::size_t skipped = offset % direct_alignment;
    const auto needed = (skipped + out.size() + direct_alignment - 1) / direct_alignment * direct_alignment;
    const auto piece = bounce.first(std::min(needed, most));
    const auto got = read_some(direct_.native(), offset - skipped, piece);
    const auto useful = got > skipped ? std::min(got - skipped, out.size()) : 0;
    fast_copy(out.data(), bounce.data() + skipped, useful);
    offset += useful;
    out = out.subspan(useful);
    // After a short read the next offset is not aligned.
    if (got < piece.size()) return read_cached(offset, out);
  }
}

}  // namespace penstock::io
