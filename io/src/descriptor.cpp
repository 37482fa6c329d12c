#include "descriptor.hpp"

#include "failure.hpp"
#include "system_call.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace penstock::io {
namespace fs = std::filesystem;
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

/// Links that lie in its own folder of procfs are names; those that lie deeper lead to what is open.
bool lists_what_is_open(const fs::path& folder) {
  constexpr ino_t root = 1;
  struct statfs system {};
  struct stat status {};
  return ::statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
         ::stat(folder.c_str(), &status) == 0 && status.st_ino != root;
}

/// Where the system lists the open file that a path leads to; empty where it leads to none.
fs::path descriptor_behind(fs::path path) {
  constexpr int most_links = 40;  // as many as the system follows
  std::error_code none;
  for (int links = 0; links < most_links && fs::is_symlink(path, none); ++links) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (lists_what_is_open(folder)) return fs::canonical(folder, none) / path.filename();
    path = folder / fs::read_symlink(path, none);
  }
  return {};
}

/// The number of this process's descriptor that such a path names, or -1.
int own_number(const fs::path& path) {
  const auto folder = path.parent_path().native(), name = path.filename().native();
  int number = -1;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc{} || end != name.data() + name.size() || !folder.ends_with("/fd")) return -1;
  return folder.starts_with(fmt::format("/proc/{}/", ::getpid())) ? number : -1;
}

}  // namespace

void descriptor_traits::release(int fd) noexcept { ::close(fd); }

descriptor open_descriptor(const char* path, int flags, unsigned mode, const fault_seam& faults,
                           std::string_view file) {
  return descriptor(past_signals({faults, fault_site::open_file, file.empty() ? path : file},
                                 [&](std::size_t) { return ::open(path, flags | O_CLOEXEC, mode); }));
}

std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const fault_seam& faults,
                    std::string_view file) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto rest = out.subspan(done);
    const auto got =
        past_signals({faults, fault_site::read_file, file, offset + done, rest.size()},
                     [&](std::size_t n) { return ::pread(fd, rest.data(), n, static_cast<off_t>(offset + done)); });
    if (got < 0) {
      const int code = errno;
      throw failure(fmt::format("reading the file failed: {}", std::generic_category().message(code)), code);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool names_descriptor(fs::path path) { return !descriptor_behind(std::move(path)).empty(); }

descriptor open_to_write(const fs::path& path, int flags, const fault_seam& faults) {
  const fs::path behind = descriptor_behind(path);
  if (behind.empty()) return open_descriptor(path.c_str(), O_WRONLY | flags, 0666, faults);
  const int number = own_number(behind);
  if (number < 0) return open_descriptor(path.c_str(), O_WRONLY | O_APPEND | flags, 0666, faults);
  return descriptor(past_signals({faults, fault_site::open_file, path.native()},
                                 [&](std::size_t) { return ::fcntl(number, F_DUPFD_CLOEXEC, 0); }));
}

std::string not_opened(int code) {
  const std::string_view hint = open_hint(code);
  return hint.empty() ? fmt::format("it cannot be opened: {}", std::generic_category().message(code))
                      : std::string(hint);
}

}  // namespace penstock::io
