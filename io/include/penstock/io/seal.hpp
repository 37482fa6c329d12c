#pragma once

#include <penstock/fault.hpp>

#include <filesystem>

namespace penstock::io {

/// Whether the bytes of a file are those that writer::commit_sealed() wrote: read once, without libhdf5, which may
/// crash on damaged metadata. False where it has no seal, as files of other programs, or where it cannot be opened.
/// Throws io::error where the bytes are others, or cannot be read. `faults` is asked at open_file and read_file.
bool check_seal(const std::filesystem::path& file, const fault_seam& faults = {});

}  // namespace penstock::io
