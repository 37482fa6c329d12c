#pragma once

#include "descriptor.hpp"
#include "system_call.hpp"

#include <penstock/fault.hpp>

#include <filesystem>
#include <string_view>

namespace penstock::io {

/// A file that is written under another name, beside its own, and then put in its place: it is there whole or not at
/// all, whatever happens. What is not published is removed.
class partial_file {
 public:
  /// For a file of that path; links stay, and what they name is written. `faults` is asked at open_file, write_file,
  /// sync_file (of the file, then of its folder) and rename_file, before each call of the system. Nothing happens yet.
  explicit partial_file(std::filesystem::path path, fault_seam faults = {});
  /// Removes it, unless it was published, or somebody else's lies under its name by now.
  ~partial_file();
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  const fault_seam& faults() const noexcept { return faults_; }

  /// Makes it, empty and locked, and removes what killed processes left of the same file. Throws failure, as do all
  /// that follow.
  void create();
  /// Where it lies until it is published.
  const std::filesystem::path& name() const noexcept { return name_; }
  int native() const noexcept { return lock_.native(); }

  void append(std::string_view bytes);
  /// Syncs it to the disk, renames it and syncs its folder. Whoever wrote to it has closed it. Where it is the folder
  /// that fails, the file is in its place; file systems that cannot sync folders, or do not let it be opened, are none
  /// that fail.
  void publish();

  /// Says that it cannot be written, why, and what helps. `code` is an errno.
  [[noreturn]] static void refuse(int code);

 private:
  call_site at(fault_site site) const;
  int sync(int fd) const;
  void sync_name() const;

  std::filesystem::path path_;
  fault_seam faults_;
  std::filesystem::path target_;  ///< what path_ names, past links
  std::filesystem::path name_;    ///< empty: there is none, or none any more
  descriptor folder_;             ///< of target_; empty where it may not be read
  descriptor lock_;               ///< it is being written for as long as this is open
};

}  // namespace penstock::io
