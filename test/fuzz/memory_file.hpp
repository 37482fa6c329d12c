#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace penstock::fuzz {

/// A file that exists in memory alone, with a path that this process and its children can open. Each is a new one to
/// libhdf5, which takes a file that it still holds open for the one of the same number.
class memory_file {
 public:
  memory_file(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("fuzzed.h5", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~memory_file() { ::close(descriptor_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace penstock::fuzz
