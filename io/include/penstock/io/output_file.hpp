#pragma once

#include <penstock/fault.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace penstock::io {

/// A file of any bytes (a report, a table, a picture) that is there whole or not at all, as those of `writer` are: what
/// is written goes into a temporary file beside it, which commit() syncs to the disk and puts in its place. Without
/// commit() that is removed, and an older file of the name stays. Symbolic links stay: what they name is written.
/// What is there and no regular file, a pipe or a device, takes the bytes as they come; such a call may wait. So does
/// what a path names as open ("/dev/stdout", "/proc/self/fd/1"), be it a regular file: its bytes stay, and what is
/// written follows at the descriptor's position (at the end, where it is another process's).
///
/// Not thread-safe. Every function throws io::error that names the file and the system's cause.
class output_file {
 public:
  /// `faults` is asked at open_file, write_file, sync_file and rename_file, before each call of the system.
  explicit output_file(std::filesystem::path path, fault_seam faults = {});
  output_file(output_file&&) noexcept;
  output_file& operator=(output_file&&) noexcept;
  ~output_file();

  /// Where it lies until commit(): another program, too, may write there meanwhile.
  const std::filesystem::path& name() const noexcept;
  void append(std::string_view bytes);
  /// Syncs and renames. Nothing may be written afterwards.
  void commit();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// An output_file of these bytes.
void write_file(const std::filesystem::path& path, std::string_view bytes, fault_seam faults = {});

/// What holds when append_to_file() returns.
enum class durability : std::uint8_t {
  process,  ///< the system has it: it survives the end of this process
  disk      ///< and that of the machine
};

/// Adds `bytes` to the end of a file, which is made where there is none; to what a path names as open, as an
/// output_file does. Where that fails, a part may be there. Throws io::error that names the file and the system's
/// cause. `faults` is asked at open_file, write_file and sync_file.
void append_to_file(const std::filesystem::path& path, std::string_view bytes, durability until,
                    const fault_seam& faults = {});

}  // namespace penstock::io
