#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train {

/// What a part of a run's memory is for.
enum class memory_category : std::uint8_t {
  parameters,   ///< and their rounded copy
  gradients,    ///< of the parameters
  optimizer,    ///< moments, and the ring that they pass through
  activations,  ///< what grows with the rows of a batch: inputs, outputs of layers, gradients of these
  workspaces,   ///< of matrix products and sums
  state,        ///< statistics, counters, landing places
  pipeline,     ///< rings, pool, slots, readers
  model         ///< of a model of yours
};
std::string_view name_of(memory_category) noexcept;
/// Of an item of a plan, by its name.
memory_category category_of(std::string_view item) noexcept;

/// Bytes of one category and kind. What is allocated is looked up; what of it is used is derived, since nothing is
/// allocated or freed between the first step and the last.
struct memory_use {
  memory_category category;
  gpu::memory_kind kind;
  std::size_t planned_bytes = 0;  ///< what the plan says of it
  /// What gpu::memory holds for its items, as it hands them out. 0 of kind host, which gpu::memory does not allocate:
  /// what io and OpenBLAS took there is in memory_snapshot::process_bytes.
  std::size_t allocated_bytes = 0;
  /// Derived: the share of it that the last work had: of activations that of the last batch's rows, in proportion; of
  /// pipelines what the plan of the one that streams says (training and test set take turns in the same bytes); of the
  /// rest all. Of kind host, what is planned.
  std::size_t used_bytes = 0;
  std::size_t peak_bytes = 0;  ///< derived: the largest used_bytes so far
};

/// Memory of a run at one moment.
struct memory_snapshot {
  std::vector<memory_use> uses{};      ///< in the order of categories; none that are empty
  std::size_t device_free_bytes = 0;   ///< as the device's driver counts them now, beside all processes
  std::size_t process_bytes = 0;       ///< of host memory that this process holds now, as the system counts it
  std::size_t process_peak_bytes = 0;  ///< the most that it held

  std::size_t planned(gpu::memory_kind kind) const noexcept;
  std::size_t allocated(gpu::memory_kind kind) const noexcept;
  std::size_t used(gpu::memory_kind kind) const noexcept;
  std::size_t peak(gpu::memory_kind kind) const noexcept;
};

/// Follows what a run uses of its memory. trainer has one; a loop of yours can keep its own. Not thread-safe.
class memory_monitor {
 public:
  /// `memory`: all of the run's; it is looked at here alone. `rows`: what activations are planned for.
  memory_monitor(const gpu::memory& memory, std::size_t rows);

  /// From now on this pipeline streams, in the bytes that pipelines take turns in.
  void streams(const gpu::ledger& pipeline) noexcept;
  /// A batch of so many rows has gone through the model.
  void batch(std::size_t rows) noexcept;
  /// Asks the driver and the system, which takes some microseconds; does not wait for the device.
  memory_snapshot now() const;

 private:
  memory_use* find(memory_category category, gpu::memory_kind kind) noexcept;

  gpu::device device_;
  std::size_t rows_;
  std::size_t last_rows_ = 0;
  std::vector<memory_use> uses_;
};

}  // namespace penstock::train
