#pragma once

#include <penstock/pipeline/report.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>

#include "measure.hpp"

namespace examples {

/// What the machine could do at best, measured briefly. The link's limit is measured once: pinned memory copied to the
/// device in pieces of many blocks, as a pipeline copies neighbours together; absent on the host device, which has no
/// link. That of the storage is measured once for each set of files that hold values (io::file::value_files), on the
/// largest 32 of them, or more where these are too small: plain positioned reads on all processors or three quarters of
/// them, whichever is faster, with the page cache as it is. Absent where all are too small: threads that read them are
/// in each other's way, and the storage gives more.
class limits_by_files {
 public:
  /// Those of a request. Measures what was not measured yet, with blocks of the size that the pipeline's plan chose,
  /// within the request's budgets: one to two seconds; four where storage is slow. Throws std::runtime_error
  /// (io::error, too) where a file cannot be read.
  penstock::pipeline::machine_limits of(const stream_request& request, std::size_t batch_rows);

 private:
  std::map<std::set<std::filesystem::path>, penstock::pipeline::machine_limits> measured_;
};

}  // namespace examples
