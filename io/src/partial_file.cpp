#include "partial_file.hpp"

#include "failure.hpp"
#include "stale_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace penstock::io {
namespace fs = std::filesystem;
namespace {

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// fsync of a file or folder; the error of the system, or 0.
int sync_to_disk(const fs::path& path, int flags) {
  const descriptor opened = open_descriptor(path.c_str(), flags);
  if (!opened) return errno;
  int error = 0;
  do error = ::fsync(opened.native()) == 0 ? 0 : errno;
  while (error == EINTR);
  return error;
}

}  // namespace

partial_file::partial_file(fs::path path, fault_seam faults) : path_(std::move(path)), faults_(std::move(faults)) {}

partial_file::~partial_file() {
  std::error_code ignored;
  if (!name_.empty() && is_name_of(lock_.native(), name_)) fs::remove(name_, ignored);
}

void partial_file::ask(fault_site site, std::uint64_t offset, std::size_t bytes) const {
  if (!faults_) return;
  const int code = faults_->before(site, path_.native(), offset, bytes).error;
  if (code != 0 && code != EINTR) refuse(code);  // what a signal interrupts is done again
}

void partial_file::refuse(int code) {
  const char* const advice = code == EMFILE || code == ENFILE
                                 ? "raise the limit of open files (ulimit -n), or hold fewer open"
                                 : "check the folder's permissions and the free space";
  throw failure(fmt::format("it cannot be written ({}); {}", std::strerror(code), advice), code);
}

// Created by the system, exclusively: libhdf5's own message would not say why a folder refuses, and another writer of
// this process may be at work on the same file.
void partial_file::create() {
  ask(fault_site::open_file, 0, 0);
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

  const fs::path name = partial_name(target_);
  int code = 0;
  const auto create = [&] {
    lock_ = open_descriptor(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0666);
    code = !lock_ ? errno : lock_partial(lock_.native()) ? 0 : EEXIST;
  };
  create();
  if (code == EEXIST && remove_unless_locked(name)) create();
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
  ask(fault_site::write_file, 0, bytes.size());
  if (::lseek(lock_.native(), 0, SEEK_END) < 0) refuse(errno);
  while (!bytes.empty()) {
    const auto wrote = ::write(lock_.native(), bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) refuse(errno);
    if (wrote > 0) bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void partial_file::publish() {
  ask(fault_site::sync_file, 0, 0);
  if (const int code = sync_to_disk(name_, O_RDONLY)) refuse(code);
  ask(fault_site::rename_file, 0, 0);
  if (!is_name_of(lock_.native(), name_))
    throw failure(fmt::format("somebody removed or replaced {} while it was written; write it again, and let nobody "
                              "else write there",
                              name_.string()),
                  ESTALE);
  if (::rename(name_.c_str(), target_.c_str()) != 0) refuse(errno);
  name_.clear();
  lock_.reset();
  // Some file systems do not sync folders; the file itself is safe by then.
  sync_to_disk(folder_of(target_), O_RDONLY | O_DIRECTORY);
}

}  // namespace penstock::io
