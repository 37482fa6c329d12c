#pragma once

#include <penstock/fault.hpp>
#include <penstock/handle.hpp>

#include <filesystem>
#include <string>

namespace penstock::io {

struct descriptor_traits {
  using native_type = int;
  static int empty() noexcept { return -1; }
  static void release(int fd) noexcept;
};

/// Owner of a file descriptor.
using descriptor = handle<descriptor_traits>;

/// open(), past signals: network file systems let these interrupt it. Empty, with errno, where it fails.
descriptor open_descriptor(const char* path, int flags, unsigned mode = 0) noexcept;

/// Why a file could not be opened for reading, from errno, and what helps.
std::string not_opened(int code);

/// Lets the seam refuse that a file is opened. Throws failure.
void ask_to_open(const fault_seam& faults, const std::filesystem::path& path);

}  // namespace penstock::io
