#include "partial_file.hpp"

#include "failure.hpp"
#include "stale_files.hpp"
#include "write_at.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace penstock::io {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

constexpr int most_tries = 1000;  // a second, about

/// What file systems say that cannot sync a folder.
bool cannot_be_synced(int code) { return code == EINVAL || code == ENOTSUP || code == ENOSYS; }

}  // namespace

partial_file::partial_file(fs::path path, fault_seam faults) : path_(std::move(path)), faults_(std::move(faults)) {}

partial_file::~partial_file() {
  std::error_code ignored;
  if (!name_.empty() && is_name_of(lock_.native(), name_)) fs::remove(name_, ignored);
}

call_site partial_file::at(fault_site site) const { return {faults_, site, path_.native()}; }

void partial_file::refuse(int code) {
  const char* const advice = code == EMFILE || code == ENFILE
                                 ? "raise the limit of open files (ulimit -n), or hold fewer open"
                                 : "check the folder's permissions and the free space";
  throw failure(fmt::format("it cannot be written ({}); {}", std::strerror(code), advice), code);
}

// Created by the system, exclusively: libhdf5's own message would not say why a folder refuses, and another writer of
// this process may be at work on the same file.
void partial_file::create() {
  if (names_descriptor(path_))
    throw failure("it names what is open, and no file that can be put in its place; name another file", EEXIST);
  target_ = behind_links(path_);
  std::error_code none;  // what cannot be asked is no link, and no file
  if (fs::is_symlink(target_, none)) refuse(ELOOP);
  std::error_code why;
  const bool has_folder = fs::is_directory(folder_of(target_), why);
  if (why && why != std::errc::no_such_file_or_directory && why != std::errc::not_a_directory) refuse(why.value());
  if (!has_folder)
    throw failure(fmt::format("there is no folder {}; make it first", folder_of(target_).string()), ENOENT);
  if (fs::exists(target_, none) && !fs::is_regular_file(target_, none))
    throw failure("it is there and no regular file; name another file", EEXIST);
  remove_stale_files(target_);
  // Now, since it is too late for want of descriptors when the file is in its place. Some may be written and not read.
  folder_ = open_descriptor(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY);
  if (!folder_ && errno != EACCES) refuse(errno);

  const fs::path name = partial_name(target_);
  int code = 0;
  const auto create = [&] {
    lock_ = open_descriptor(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0666, faults_, path_.native());
    code = !lock_ ? errno : lock_partial(lock_.native()) && is_name_of(lock_.native(), name) ? 0 : EEXIST;
  };
  // Another writer may take what has no lock yet for one of those that were left: it is about to remove it then.
  bool taken = false;
  for (int tries = 0; tries < most_tries; ++tries) {
    create();
    if (code != EEXIST) break;
    taken = taken || lock_;
    if (remove_unless_locked(name)) continue;
    if (!taken) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (code == EEXIST)
    throw failure(
        fmt::format("another writer is at work on it, in {}; wait for that, remove it where nobody is, or name another "
                    "file",
                    name.string()),
        code);
  if (code != 0) refuse(code);
  name_ = name;
}

void partial_file::append(std::string_view bytes) {
  const auto end = ::lseek(lock_.native(), 0, SEEK_END);
  if (end < 0) refuse(errno);
  const int code = write_at(lock_.native(), static_cast<std::uint64_t>(end), bytes, faults_, path_.native());
  if (code != 0) refuse(code);
}

// The descriptor is as old as the file: it is told of every write to the disk that failed since, whoever wrote.
int partial_file::sync(int fd) const {
  return past_signals(at(fault_site::sync_file), [fd](std::size_t) { return ::fsync(fd); }) == 0 ? 0 : errno;
}

void partial_file::publish() {
  if (const int code = sync(lock_.native())) refuse(code);
  if (!is_name_of(lock_.native(), name_))
    throw failure(fmt::format("somebody removed or replaced {} while it was written; write it again, and let nobody "
                              "else write there",
                              name_.string()),
                  ESTALE);
  const auto rename = [&](std::size_t) { return ::rename(name_.c_str(), target_.c_str()); };
  if (past_signals(at(fault_site::rename_file), rename) != 0) refuse(errno);
  name_.clear();
  lock_.reset();
  sync_name();
}

// The file is safe by now; that its name is its own is on the disk when the folder is.
void partial_file::sync_name() const {
  const int code = folder_ ? sync(folder_.native()) : 0;
  if (code != 0 && !cannot_be_synced(code))
    throw failure(fmt::format("it is written, but its folder could not be synced to the disk ({}): if the machine "
                              "stops now, the file before may be there again, or none; check the disk",
                              std::strerror(code)),
                  code);
}

}  // namespace penstock::io
