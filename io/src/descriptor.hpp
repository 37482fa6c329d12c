#pragma once

#include <penstock/fault.hpp>
#include <penstock/handle.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace penstock::io {

struct descriptor_traits {
  using native_type = int;
  static int empty() noexcept { return -1; }
  static void release(int fd) noexcept;
};

/// Owner of a file descriptor.
using descriptor = handle<descriptor_traits>;

/// open(), past signals: network file systems let these interrupt it. Empty, with errno, where it fails. `faults` is
/// asked at open_file about `file`; an empty name: about the path.
descriptor open_descriptor(const char* path, int flags, unsigned mode = 0, const fault_seam& faults = {},
                           std::string_view file = {});

/// Fills `out` from `offset` of an open file on, past signals and whatever the pieces in which the system gives it: how
/// much of it, less than all where the file ends. Throws failure. `faults` is asked at read_file about `file`.
std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const fault_seam& faults,
                    std::string_view file);

/// A path, past symbolic links, to what the system lists as open ("/dev/stdout", "/proc/self/fd/1"): it stands for an
/// open file, whatever its name, or none, and never for a name that another file may be given.
bool names_descriptor(std::filesystem::path path);

/// open_descriptor() for writing; of a path that names a descriptor of this process, that one once more: writes go on
/// at its position. One of another process's is opened to append.
descriptor open_to_write(const std::filesystem::path& path, int flags, const fault_seam& faults);

/// Why a file could not be opened for reading, from errno, and what helps.
std::string not_opened(int code);

}  // namespace penstock::io
