#pragma once

#include "measure.hpp"

#include <optional>

namespace examples {

/// What the machine could do at best, measured briefly.
struct machine_limits {
  /// Pinned memory copied to the device in pieces of many blocks, as a pipeline copies neighbours together; absent on
  /// the host device, which has no link.
  std::optional<double> link_bytes_per_second;
  /// Plain positioned reads of the files that the request's values come from (sources of virtual datasets, external raw
  /// files) on all processors or three quarters of them, whichever is faster, with the page cache as it is. Absent
  /// where these are too small: threads that read them are in each other's way, and the storage gives more.
  std::optional<double> storage_bytes_per_second;
};

/// Measures with blocks of the size that the pipeline's plan chose, within the request's budgets. Takes one to two
/// seconds; four where storage is slow. Throws std::runtime_error (io::error, too) where a file cannot be read.
machine_limits measure_limits(const stream_request& request, std::size_t batch_rows);

}  // namespace examples
