#pragma once

#include <penstock/fault.hpp>

#include <string>
#include <string_view>

namespace penstock::io {

/// The seal of a file whose bytes are all there: what is appended to it, behind HDF5's end of the file, where libhdf5
/// does not look. Throws failure where the file cannot be read. `faults` is asked at read_file about `name`.
std::string seal_of(int file, const fault_seam& faults, std::string_view name);

}  // namespace penstock::io
