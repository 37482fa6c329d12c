#pragma once

#include "identifier.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace penstock::io {

/// Where libhdf5 looks for a source of a virtual dataset in the file `owner`: as it is written where that is absolute,
/// else beside the owner, then from the working directory. Nothing where there is no such file.
std::optional<std::filesystem::path> find_source(const std::filesystem::path& written,
                                                 const std::filesystem::path& owner);

/// FILE:DATASET of the mappings of a virtual dataset whose file is not there. Throws failure.
std::vector<std::string> absent_sources(hid_t dataset, const std::filesystem::path& owner);

}  // namespace penstock::io
