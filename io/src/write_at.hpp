#pragma once

#include <penstock/fault.hpp>

#include <cstdint>
#include <string_view>

namespace penstock::io {

/// Writes all of `bytes` from `offset` of an open file on, whatever the pieces in which the system takes it, past
/// signals. The errno of what failed, ENOSPC where the system takes nothing and does not say why, or 0. `faults` is
/// asked at write_file about `file`.
int write_at(int fd, std::uint64_t offset, std::string_view bytes, const fault_seam& faults, std::string_view file);

}  // namespace penstock::io
