#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::io {

/// Why libhdf5 must find the files of a virtual dataset's sources, or external raw files; empty where it looks for them
/// nowhere else than we do. The process's environment moves them: HDF5_VDS_PREFIX and HDF5_EXTFILE_PREFIX. These are
/// libhdf5's own, and it reads them whoever calls it; Penstock has none.
std::string why_sources_are_elsewhere();
std::string why_external_files_are_elsewhere();

/// The folders in which libhdf5 looks for the external raw files of a dataset in `owner`: that of the variable, where
/// it is set, and the working directory.
std::vector<std::filesystem::path> external_folders(const std::filesystem::path& owner);

/// The folders in which libhdf5 then looks first for the source files of virtual datasets in `owner`.
std::vector<std::filesystem::path> source_prefixes(const std::filesystem::path& owner);

}  // namespace penstock::io
