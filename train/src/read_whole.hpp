#pragma once

#include <penstock/error.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

namespace penstock::train {

/// What tells a file from another that takes its name.
struct file_stamp {
  dev_t device = 0;
  ino_t number = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  friend bool operator==(const file_stamp&, const file_stamp&) = default;
};

inline file_stamp stamp_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

/// What `read` gives. A run may save while another reads: where a new checkpoint took the place of the file meanwhile,
/// the parts that were read do not fit together, and it is read again.
template <class F>
auto read_whole(const std::filesystem::path& file, F&& read) {
  constexpr int most_times = 20;
  for (int times = 1;; ++times) {
    const file_stamp before = stamp_of(file);
    try {
      return read();
    } catch (const penstock::error&) {
      if (times == most_times || stamp_of(file) == before) throw;
    }
  }
}

}  // namespace penstock::train
