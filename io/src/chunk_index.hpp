#pragma once

#include "chunk_grid.hpp"
#include "identifier.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::io {

/// Where one chunk lies in the file.
struct chunk_entry {
  static constexpr std::uint64_t missing = ~std::uint64_t{0};

  std::uint64_t address = missing;  ///< from the file's first byte, user block included
  std::uint32_t bytes = 0;          ///< stored
  std::uint32_t mask = 0;           ///< bit n set: filter n was not applied
};

/// The chunks of one dataset, by number: 16 bytes each.
using chunk_index = std::vector<chunk_entry>;

/// More chunks than this (1 GiB of index) are left to libhdf5.
inline constexpr std::uint64_t max_indexed_chunks = std::uint64_t{1} << 26;

/// Asks libhdf5 for all chunks. `dataset` is open in the file at `path`. Throws failure. Built by H5Dchunk_iter where
/// the library has it (chunk_index_iterate.cpp), else through a file driver that notes addresses
/// (chunk_index_probe.cpp).
chunk_index build_chunk_index(const std::filesystem::path& path, const std::string& name, hid_t dataset,
                              const chunk_grid& grid);

/// Whether a few entries are what H5Dget_chunk_info_by_coord says. That call scans: a few only.
bool agrees_with_library(const chunk_index& index, hid_t file, hid_t dataset, const chunk_grid& grid);

}  // namespace penstock::io
