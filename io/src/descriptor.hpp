#pragma once

#include <penstock/handle.hpp>

namespace penstock::io {

struct descriptor_traits {
  using native_type = int;
  static int empty() noexcept { return -1; }
  static void release(int fd) noexcept;
};

/// Owner of a file descriptor.
using descriptor = handle<descriptor_traits>;

}  // namespace penstock::io
