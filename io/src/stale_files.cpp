#include "stale_files.hpp"

#include "descriptor.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::io {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view mark = ".partial-";

/// Whether it ends with the number of a process.
bool is_partial_name(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.substr(target.size()).starts_with(mark)) return false;
  const std::string_view digits = name.substr(target.size() + mark.size());
  pid_t process = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  return code == std::errc{} && end == digits.data() + digits.size() && process > 0;
}

// For writing: NFS gives an exclusive lock to nobody else.
descriptor opened(const fs::path& file) { return open_descriptor(file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK); }

}  // namespace

fs::path partial_name(const fs::path& path) {
  fs::path partial = path;
  partial += std::string(mark) + std::to_string(::getpid());
  return partial;
}

void remove_stale_files(const fs::path& path) noexcept {
  try {
    const std::string target = path.filename().native();
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", ignored))
      if (is_partial_name(entry.path().filename().native(), target)) remove_unless_locked(entry.path());
  } catch (const std::exception&) {
    // They take space, no more: what is to be written is written all the same.
  }
}

bool remove_unless_locked(const fs::path& partial) noexcept {
  const descriptor fd = opened(partial);
  if (!fd) return errno == ENOENT;
  // A file system that knows no locks does not say whether somebody is at work on it.
  if (::flock(fd.native(), LOCK_EX | LOCK_NB) != 0 || !is_name_of(fd.native(), partial)) return false;
  return ::unlink(partial.c_str()) == 0 || errno == ENOENT;
}

bool is_name_of(int fd, const fs::path& file) noexcept {
  struct ::stat of_fd = {}, of_name = {};
  return ::fstat(fd, &of_fd) == 0 && ::lstat(file.c_str(), &of_name) == 0 && of_fd.st_dev == of_name.st_dev &&
         of_fd.st_ino == of_name.st_ino;
}

fs::path behind_links(fs::path path) {
  constexpr int most_links = 40;  // as many as the system follows
  std::error_code none;
  for (int links = 0; links < most_links && fs::is_symlink(path, none); ++links)
    path = path.parent_path() / fs::read_symlink(path, none);
  return path;
}

bool lock_partial(int fd) noexcept { return ::flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

}  // namespace penstock::io
