#pragma once

#include <penstock/io/location.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::test {

/// Two files of random-looking rows of 4 KiB in chunks of 1 MiB: three quarters of the bytes plain, one quarter
/// shuffled and compressed with gzip. Gone with the object.
class stored_rows {
 public:
  static constexpr std::uint64_t columns = 1024, row_bytes = columns * 4;

  stored_rows(const std::filesystem::path& folder, std::uint64_t bytes);
  ~stored_rows();
  stored_rows(const stored_rows&) = delete;
  stored_rows& operator=(const stored_rows&) = delete;

  std::uint64_t rows() const noexcept { return plain_rows_ + packed_rows_; }
  std::string plain_file() const;
  /// Both files in turn, `times` times.
  std::vector<io::location> segments(std::uint64_t times) const;
  /// The sum of all 32-bit words, modulo 2^64, read by libhdf5 and added here: nothing of Penstock's takes part.
  std::uint64_t checksum() const;

 private:
  std::filesystem::path folder_;
  std::uint64_t plain_rows_, packed_rows_;
};

}  // namespace penstock::test
