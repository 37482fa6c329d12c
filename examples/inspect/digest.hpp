#pragma once

#include <filesystem>
#include <string>

namespace examples {

/// crc32 (8 hex digits) of a dataset's elements in C order and this machine's byte order, read row by row in bounded
/// memory; bfloat16 counts as float32, as h5py reads it. Throws penstock::io::error.
std::string digest(const std::filesystem::path& file, const std::string& dataset);

}  // namespace examples
