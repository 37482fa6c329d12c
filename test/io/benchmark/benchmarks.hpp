#pragma once

#include <filesystem>

/// Of each filter: stored chunks of 1 MiB, in memory, decoded by one thread.
void add_decoders(const std::filesystem::path& folder);
/// Rows out of the page cache, by one thread and by two, beside H5Dread.
void add_reads(const std::filesystem::path& folder);
