#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// One stage's share of the work. Seconds are summed over its threads.
struct stage_report {
  std::string name;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  double busy_seconds = 0;
  double wait_seconds = 0;
  std::string waited_for;
};

/// What a pipeline did, and what it waited for.
struct pipeline_report {
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;         ///< stored bytes of those rows
  double seconds = 0;              ///< wall clock between asking for an epoch and the end of its run
  double first_batch_seconds = 0;  ///< of the last run
  std::vector<stage_report> stages;

  /// Seconds that the consumer waited on the host, charged to the state of the block at the head of the line.
  struct charge {
    std::string cause;
    double seconds = 0;
  };
  std::vector<charge> consumer_waits;
  double consumer_wait_seconds = 0;

  std::size_t device_bytes = 0;  ///< allocated by the plan
  std::size_t pinned_bytes = 0;
  std::size_t host_bytes = 0;
  std::vector<std::string> fields;  ///< each field's access path and reason
  std::string bottleneck;           ///< in a sentence
};

std::string to_text(const pipeline_report& report);
std::ostream& operator<<(std::ostream& out, const pipeline_report& report);

}  // namespace penstock::pipeline
