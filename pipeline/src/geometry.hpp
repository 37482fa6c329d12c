#pragma once

#include "wiring.hpp"

#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/plan.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// What the sizes of a pipeline depend on, budgets apart.
struct transport_task {
  bool host = true;               ///< the device is the host
  bool pooled = false;            ///< rows are drawn from a pool
  std::uint64_t rows = 0;         ///< of an epoch
  std::size_t row_bytes = 0;      ///< stored, of all fields
  std::uint64_t window_rows = 0;  ///< order::window_rows()
  std::uint64_t run_rows = 0;     ///< order::run_rows(), 0 where sequential
  std::uint64_t chunk_rows = 1;
  std::size_t batch_rows = 1;
  std::size_t held = 0;
  bool masked = false;  ///< the last batch is padded
  std::size_t processors = 1;
  bool decodes = false;         ///< most bytes of a row are stored compressed
  std::size_t cache_bytes = 0;  ///< the processors' last level; 0: not known
  bool waits_for_disk = false;  ///< most bytes of a row are read around the page cache, and need no decoding
  transport_options wish;
  std::string block_reason, slots_reason;  ///< of the wish, where it was measured and not asked for
  /// Host memory that reading takes with so many threads.
  std::function<std::vector<io::memory_item>(std::size_t threads)> reader_memory;
};

/// Sizes of everything that a pipeline holds, and where fields lie in a slot.
struct geometry {
  std::size_t block_rows = 1;
  std::vector<bool> straight;             ///< by conversion: bytes go to the ring as they are, past image and gather
  bool lands_in_ring = false;             ///< straight fields are read into the ring itself (host)
  bool needs_only_reading = false;        ///< and so do all, and nothing else happens to them
  std::vector<std::size_t> host_offsets;  ///< by host field, in a slot; none: it lands in the ring
  std::size_t image_bytes = 0;            ///< the front of a slot that is copied to the device at once
  std::size_t slot_bytes = 0;
  std::size_t slots = 0;
  std::size_t images = 0;  ///< on the host a slot is its own image
  std::uint64_t ring_rows = 0;
  /// Consumed rows are given back in steps of at least so many; those that are poisoned with each batch.
  std::uint64_t quantum_rows = 0;
  std::uint64_t piece_rows = 0;  ///< rows that come out of a pool together, at most
  bool whole_pieces = false;     ///< the ring has room for such a piece beside all that a consumer can hold
  bool watchful = false;         ///< there are processors to spare: who waits watches for a while first
  std::size_t threads = 1;       ///< readers at first
  std::size_t most_threads = 1;  ///< and at most: the run tries what is fastest
  // A larger budget would give more of these.
  bool slots_cut_short = false;
  bool ring_cut_short = false;
  bool readers_cut_short = false;  ///< of the host budget
  gpu::ledger ledger;

  std::uint64_t blocks_of(std::uint64_t rows) const noexcept { return (rows + block_rows - 1) / block_rows; }
};

/// For people: why block, slots and readers are what they are, a line for each. Readers: as the plan begins.
std::vector<std::string> choices_of(const transport_task& task, const geometry& sizes);

/// For people: the same for a single reader, beside which no other number can be tried.
std::string why_one_reader(const geometry& sizes);

/// Names of the plan's items in the ledger.
std::string ring_item(const device_field& field);
std::string piece_item(const wiring& w, std::size_t device_field);
inline constexpr const char* pool_item = "pipeline: pool";
inline constexpr const char* staging_item = "pipeline: staging";
inline constexpr const char* slots_item = "pipeline: slots";
inline constexpr const char* mask_item = "pipeline: mask";

/// The best sizes within what `taken` leaves of `limits`. Throws gpu::budget_error. Pure.
geometry plan_geometry(const wiring& w, const transport_task& task, const gpu::budget& limits,
                       const gpu::ledger& taken);
/// The geometry whose counts a plan of the same description holds.
geometry repeat_geometry(const wiring& w, const transport_task& task, const pipeline_plan& plan);
/// The sizes that take the least device memory.
geometry smallest_geometry(const wiring& w, const transport_task& task);

}  // namespace penstock::pipeline
