#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace penstock::fuzz {

/// A file of these bytes, in memory where the system has a folder for that. (One without a name would do without a
/// folder, but libhdf5 asks for the real path of what it opens.) Each is a new one to libhdf5, which takes a file that
/// it still holds open for the one of the same number.
class memory_file {
 public:
  memory_file(const std::uint8_t* data, std::size_t size) : path_(next_path()) {
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    file.close();
    if (!file) std::abort();
  }
  ~memory_file() {
    std::error_code none;
    std::filesystem::remove(path_, none);
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path next_path() {
    static std::uint64_t count = 0;
    static const std::filesystem::path memory = "/dev/shm";
    const auto folder = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    return folder / ("penstock-fuzz-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".h5");
  }

  std::filesystem::path path_;
};

}  // namespace penstock::fuzz
