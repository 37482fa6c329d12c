#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/transform.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// How blocks travel; no effect on what the consumer sees. 0: chosen.
struct transport_options {
  std::size_t block_bytes = 0;  ///< stored bytes of a block; 0: about 2 MiB
  std::size_t slots = 0;        ///< pinned slots; 0: from the budget and the last-level cache
  /// Blocks read at once. 0: it begins with the processors, less some for the consumer, or with twice the processors
  /// where plain rows are read around the page cache; while reading holds the run up, others are tried, and the fastest
  /// is kept.
  std::size_t threads = 0;
};

/// A trace: spans of what every thread did, kept in memory and written when asked (pipeline::write_trace).
struct trace_options {
  std::size_t bytes = 0;  ///< of host memory, in the plan; 56 for each span. 0: no trace, at no cost
};

/// What was chosen, before anything is allocated.
struct pipeline_plan {
  gpu::device device = gpu::device::host();
  std::uint64_t rows = 0;  ///< of an epoch
  std::size_t batch_rows = 0;
  std::size_t held_batches = 1;
  std::size_t block_rows = 0;
  std::size_t slot_bytes = 0;
  std::size_t slots = 0;   ///< 0: blocks land in the rings (host device, fields that need no conversion)
  std::size_t images = 0;  ///< device copies of slots: pool or staging; 0: none
  std::uint64_t ring_rows = 0;
  std::size_t threads = 0;           ///< readers at first
  std::size_t most_threads = 0;      ///< and at most; what they take is in the ledger
  std::vector<std::string> choices;  ///< for people: block, slots and readers, and why so many
  std::string order;                 ///< order::description()
  std::vector<field_shape> fields;   ///< of a batch
  std::string damage_mask;  ///< the field that says which rows are intact; empty where all are, or an error comes
  std::vector<std::string> field_reports;  ///< for people: each field's access paths, and why
  gpu::ledger ledger;
};

/// A paragraph for people.
std::string to_text(const pipeline_plan& plan);

}  // namespace penstock::pipeline
