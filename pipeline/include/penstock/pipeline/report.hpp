#pragma once

#include <penstock/pipeline/damage.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// What the machine could do at best, as far as somebody measured it (penstock-throughput does).
struct machine_limits {
  std::optional<double> link_bytes_per_second{};     ///< pinned copies to the device, one after another
  std::optional<double> storage_bytes_per_second{};  ///< plain reads of the same files on all processors
};

/// Time, and what it went to.
struct time_charge {
  std::string cause{};
  double seconds = 0;
  std::string stage{};  ///< the stage it is the time of: "read", "decode", a transform's name, "copy", "gather", ...
};

/// One stage's share of the work. Seconds are summed over its workers.
struct stage_report {
  std::string name{};
  std::uint64_t blocks = 0;
  /// That it put out (a transform: all fields); 0 of the device thread, whose work has stages of its own.
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;  ///< over `seconds` of the report; bytes read ahead count
  double busy_seconds = 0;
  double wait_seconds = 0;           ///< idle during the runs
  std::string waited_for{};          ///< most of it
  std::vector<time_charge> waits{};  ///< all of it
  std::size_t workers = 0;           ///< blocks that it can work on at once
  bool workers_are_all = false;      ///< of a host transform: a higher concurrency gives it no more
  double mean_at_work = 0;           ///< blocks that it worked on at once
  double mean_queue = 0;  ///< blocks that waited in front of it; where the device thread does it, see that one
  std::uint64_t most_queue = 0;
};

/// How many blocks are read at once, and what other numbers gave while reading held the run up.
struct readers_report {
  struct tried {
    std::size_t readers = 0;
    double bytes_per_second = 0;  ///< the last time
  };
  std::size_t now = 0;
  std::size_t first = 0;
  std::size_t most = 0;
  bool as_asked_for = false;  ///< transport_options::threads: no other number is tried
  std::vector<tried> measured{};
};

/// What readers did in files, of all fields. Seconds are summed over threads.
struct reading_report {
  std::uint64_t stored_bytes = 0;   ///< read from files, as they are stored there
  std::uint64_t decoded_bytes = 0;  ///< put out by decoders
  double read_seconds = 0;
  double decode_seconds = 0;   ///< decoding and converting
  double library_seconds = 0;  ///< in libhdf5, or waiting for its lock
};

/// How long the consumer's stream waited on the device for rows: from timed events on a sample of its waits.
struct device_stall_report {
  bool applies = false;  ///< false on the host, whose rows are there when a batch is given
  std::uint64_t waits = 0;
  std::uint64_t samples = 0;
  double seconds = 0;  ///< estimated for all waits
};

/// Memory that is used in turn: what was planned, and the most of it that was in use at once.
struct memory_use {
  std::string what{};  ///< "slots", "images", "rings"
  std::size_t planned_bytes = 0;
  std::size_t peak_bytes = 0;
  bool cut_short = false;  ///< of slots and rings: with a larger budget the plan would have had more
};

/// What a pipeline did, and what it waited for.
struct pipeline_report {
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;         ///< stored bytes of those rows
  std::uint64_t failures = 0;      ///< errors of runs that are over: the first of each reached the caller
  double seconds = 0;              ///< wall clock between asking for an epoch and the end of its run, without pauses
  double first_batch_seconds = 0;  ///< of the last run
  std::vector<stage_report> stages;
  reading_report reading;
  readers_report readers;

  /// Seconds that the consumer waited on the host, each moment charged to the state of the block at the head of the
  /// line. They add up to consumer_wait_seconds. (Reading, decoding and libhdf5 share a block's time as they share all
  /// readers' time.)
  std::vector<time_charge> consumer_waits;
  double consumer_wait_seconds = 0;
  device_stall_report device_stall;

  std::size_t slots = 0;  ///< planned; 0: blocks land where they are consumed
  double mean_slots_in_use = 0;
  std::uint64_t most_slots_in_use = 0;
  std::vector<memory_use> memory;
  std::size_t device_bytes = 0;  ///< planned, and allocated before the first batch
  std::size_t pinned_bytes = 0;
  std::size_t host_bytes = 0;
  std::uint64_t damaged_row_count = 0;  ///< of the source, left out so far
  std::vector<damaged_rows> damaged;    ///< where they are, neighbours joined
  std::vector<std::string> fields;      ///< each field's access path and reason
  std::vector<std::string> choices;     ///< block, slots and readers, and why so many
  machine_limits limits;
  std::string bottleneck;  ///< in a sentence
};

/// The stage that holds the consumer back, in a sentence; beside report.limits where these are known.
std::string bottleneck_of(const pipeline_report& report);

std::string to_text(const pipeline_report& report);
std::ostream& operator<<(std::ostream& out, const pipeline_report& report);

}  // namespace penstock::pipeline
