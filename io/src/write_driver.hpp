#pragma once

#include "identifier.hpp"

#include <penstock/fault.hpp>

#include <string>

namespace penstock::io {

/// How writing a file went. Outlives the file.
struct write_outcome {
  std::string path{};   ///< what `faults` is asked about
  fault_seam faults{};  ///< asked at open_file, read_file and write_file before each call of the system
  int error = 0;        ///< errno of the open or first write that failed; nothing was written after it
};

/// File access properties with a file driver of our own for files that are written: positioned writes, and no locks.
///
/// HDF5 1.10 does not survive a write that fails: it cannot close the file any more, keeps its memory and objects, and
/// crashes when the program ends. So it is not told. The driver notes the error in `outcome` and swallows what is
/// written after it; who writes looks there after each call, and throws the file away.
property_id write_access(write_outcome& outcome);

}  // namespace penstock::io
