#pragma once

#include "identifier.hpp"

#include <penstock/fault.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::io {

struct dataset_files {
  std::vector<std::filesystem::path> all;     ///< file::files_behind
  std::vector<std::filesystem::path> values;  ///< file::value_files
};

/// Those of the dataset `name` of an open file. Throws failure where the system fails.
dataset_files files_behind(hid_t file, const std::filesystem::path& path, const std::string& name,
                           const fault_seam& faults = {});

}  // namespace penstock::io
