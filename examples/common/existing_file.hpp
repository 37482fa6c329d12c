#pragma once

#include <filesystem>
#include <string>

namespace examples {

/// Whether a file with the signature of HDF5, also behind a user block, is there under this name, and can be read.
bool is_hdf5(const std::filesystem::path& file);

/// Refuses the name of a file for results, given by `option`, under which a file lies that is not the program's own: of
/// its own ones the root has a text attribute named `mark`. `what` completes "the file is there and ...". Nothing is
/// there to lose where the file is empty, a device or a pipe.
void check_own(const char* option, const std::string& file, const char* mark, const char* what);

}  // namespace examples
