#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>

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

/// Bytes of one category and kind.
struct memory_use {
  memory_category category;
  gpu::memory_kind kind;
  std::size_t planned_bytes = 0;  ///< what the plan holds for it, all of it allocated before the first step
  /// What the work asked for last has in it: activations of the last batch's rows, the pipeline that streams (training
  /// and test set take turns in the same bytes). Of host memory, what is planned.
  std::size_t used_bytes = 0;
  std::size_t peak_bytes = 0;  ///< the most that was used so far
};

/// Memory of a run at one moment.
struct memory_snapshot {
  std::vector<memory_use> uses{};      ///< in the order of categories; none that are empty
  std::size_t device_free_bytes = 0;   ///< as the device's driver counts them now, beside all processes
  std::size_t process_bytes = 0;       ///< of host memory that this process holds now, as the system counts it
  std::size_t process_peak_bytes = 0;  ///< the most that it held

  std::size_t planned(gpu::memory_kind kind) const noexcept;
  std::size_t used(gpu::memory_kind kind) const noexcept;
  std::size_t peak(gpu::memory_kind kind) const noexcept;
};

/// Follows what a run uses of its plan. trainer has one; a loop of yours can keep its own. Not thread-safe.
class memory_monitor {
 public:
  /// `planned`: everything. `rows`: what activations are planned for.
  memory_monitor(gpu::device d, const gpu::ledger& planned, std::size_t rows);

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
