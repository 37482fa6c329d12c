#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace penstock::gpu::host {

/// Limits that the control groups of a process set. The files are those of Linux:
/// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. `membership` is the text of /proc/self/cgroup, `mount` what
/// is /sys/fs/cgroup.
class cgroup {
 public:
  cgroup(std::filesystem::path mount, const std::string& membership);
  /// This process's.
  static cgroup of_this_process();

  /// Processors' worth of time: the least quota of the group and those above it. Nothing where there is no limit.
  std::optional<double> processors() const;
  /// What can still be used below the memory limit, page cache counted as free; and the limit.
  struct memory {
    std::size_t free_bytes;
    std::size_t limit_bytes;
  };
  std::optional<memory> memory_limit() const;

 private:
  // Folders of the group and of those above it, innermost first.
  std::vector<std::filesystem::path> folders(const std::string& controller) const;

  std::filesystem::path mount_;
  std::optional<std::string> unified_;                            // path in the v2 hierarchy
  std::vector<std::pair<std::string, std::string>> controllers_;  // v1: "cpu,cpuacct" and its path
};

}  // namespace penstock::gpu::host
