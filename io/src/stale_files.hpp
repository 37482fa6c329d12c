#pragma once

#include <filesystem>

namespace penstock::io {

/// The name under which this process writes `path` before it is renamed.
std::filesystem::path partial_name(const std::filesystem::path& path);

/// Removes what writers of `path` left that were killed: files NAME.partial-PID whose process is gone and which nobody
/// has locked. (Numbers of processes mean nothing on another machine, or in another container; locks do.)
void remove_stale_files(const std::filesystem::path& path) noexcept;

/// Marks a partial file as one that is being written, for as long as the descriptor is open.
void lock_partial(int fd) noexcept;

}  // namespace penstock::io
