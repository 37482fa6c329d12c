#include "stale_files.hpp"

#include "descriptor.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::io {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view mark = ".partial-";

/// The process that a name was made by, or 0.
pid_t writer_of(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.substr(target.size()).starts_with(mark)) return 0;
  const std::string_view digits = name.substr(target.size() + mark.size());
  pid_t process = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  return code == std::errc{} && end == digits.data() + digits.size() && process > 0 ? process : 0;
}

bool is_gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

descriptor opened(const fs::path& file) {
  return descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

bool is_locked(const fs::path& file) {
  const descriptor fd = opened(file);
  return !fd || ::flock(fd.native(), LOCK_EX | LOCK_NB) != 0;
}

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
    for (const auto& entry : fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", ignored)) {
      const pid_t process = writer_of(entry.path().filename().native(), target);
      if (process != 0 && is_gone(process) && !is_locked(entry.path())) fs::remove(entry.path(), ignored);
    }
  } catch (const std::exception&) {
    // They take space, no more: what is to be written is written all the same.
  }
}

bool remove_unless_locked(const fs::path& partial) noexcept {
  const descriptor fd = opened(partial);
  // Where the file system knows no locks, the number of the process must do.
  if (fd && ::flock(fd.native(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ::unlink(partial.c_str()) == 0 || errno == ENOENT;
}

fs::path behind_links(fs::path path) {
  constexpr int most_links = 40;  // as many as the system follows
  std::error_code none;
  for (int links = 0; links < most_links && fs::is_symlink(path, none); ++links)
    path = path.parent_path() / fs::read_symlink(path, none);
  return path;
}

void lock_partial(int fd) noexcept { ::flock(fd, LOCK_SH | LOCK_NB); }

}  // namespace penstock::io
