#pragma once

#include <filesystem>

namespace penstock::io {

/// The name under which this process writes `path` before it is renamed.
std::filesystem::path partial_name(const std::filesystem::path& path);

/// Removes what writers of `path` left that were killed: files NAME.partial-PID, as remove_unless_locked() does. Who is
/// at work has a lock; the number says nothing: another process has it by now, or it is of another machine or
/// container.
void remove_stale_files(const std::filesystem::path& path) noexcept;

/// Removes a partial file of that name, as one left by a killed process that had this one's number, unless somebody has
/// it locked, or the file system knows no locks. Whether it is gone.
bool remove_unless_locked(const std::filesystem::path& partial) noexcept;

/// The file that is replaced where `path` is written: at the end of symbolic links, which stay.
std::filesystem::path behind_links(std::filesystem::path path);

/// Marks a partial file as one that is being written, for as long as the descriptor is open. False where somebody else
/// has it, and is about to remove it.
bool lock_partial(int fd) noexcept;

/// Whether the file is still the one that the descriptor is of.
bool is_name_of(int fd, const std::filesystem::path& file) noexcept;

}  // namespace penstock::io
