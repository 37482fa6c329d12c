#pragma once

#include <string>

namespace penstock::io {

/// The seal of a file whose bytes are all there: what is appended to it, behind HDF5's end of the file, where libhdf5
/// does not look. Throws failure where the file cannot be read.
std::string seal_of(int file);

}  // namespace penstock::io
