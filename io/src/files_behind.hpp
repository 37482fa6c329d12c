#pragma once

#include "identifier.hpp"

#include <penstock/fault.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::io {

/// file::files_behind of the dataset `name` of an open file. Throws failure where the system fails.
std::vector<std::filesystem::path> files_behind(hid_t file, const std::filesystem::path& path, const std::string& name,
                                                const fault_seam& faults = {});

}  // namespace penstock::io
