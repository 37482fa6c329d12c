#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/train/stage.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace penstock::train {

/// What makes a step fit a budget, in the order in which it is tried. Each comes on top of those before it, but for
/// activations, which are first offloaded without the moments; where that does not do, either way without recompute,
/// which may need more of the device than an offload does.
enum class lever : std::uint8_t {
  micro_batch,          ///< fewer rows at once, down to a floor, and more batches for one step
  recompute,            ///< activation checkpointing, with the segments that take the least
  offload_optimizer,    ///< see offload_options
  offload_activations,  ///< see offload_options
  below_floor           ///< even fewer rows, with those of the others that leave the most
};
std::string_view name_of(lever) noexcept;

/// The fewest rows at once before other levers are tried: a choice, not the best of a measurement. On an H100 a small
/// model loses a third of its speed or more with each halving of 256 rows, as its launches are what takes time, and a
/// seventh with activations computed again or offloaded (train/README.md, "Each lever").
inline constexpr std::size_t default_floor_rows = 128;

/// A step that fits.
struct fitted_step {
  stage_options stage{};       ///< with the rows and the levers that were chosen
  std::size_t accumulate = 1;  ///< batches for one batch that was asked for: stage.rows times it is the asked number
  std::vector<lever> used{};   ///< in order; empty where what was asked for fits as it is
  std::vector<std::string> reasons{};  ///< a sentence for each of them: what it is and why
};

/// Whether a run whose stage has these options fits its budget. More rows never fit where fewer do not.
using fits_budget = std::function<bool(const stage_options&)>;

/// The largest number of rows up to `most` that fits, the other options as they are; 0 where one row does not.
std::size_t largest_rows(const stage_options& options, const fits_budget& fits, std::size_t most);
/// The same for a stage alone: plan(d, rows) fits `limits`, and with one row more it does not. Throws like plan().
std::size_t largest_rows(gpu::device d, const stage_options& options, const gpu::budget& limits,
                         std::size_t most = std::size_t{1} << 30);

/// The segments of recompute_layers with which a stage takes the least device memory; 0 where none takes less than the
/// options as they are. Throws like plan(): std::invalid_argument, and gpu::error for a precision that the device
/// lacks.
std::size_t best_segment(gpu::device d, const stage_options& options);

/// The fewest levers with which `asked` fits: rows at once are a divisor of asked.rows, so that a step has the rows
/// that were asked for. Levers that `asked` has already stay. One that frees no device memory is passed over, and so is
/// an offload with which nothing fits that fits without, as where pinned memory is scarce; below the floor, one that
/// leaves no more rows. Empty where one row fits with none of them; the last that `fits` was asked about is then what
/// takes the least device memory. `fits` is called a few times for each lever. Throws what it does, and like plan().
std::optional<fitted_step> fit_step(gpu::device d, const stage_options& asked, const fits_budget& fits,
                                    std::size_t floor_rows = default_floor_rows);
/// The same for a stage alone in `limits`.
std::optional<fitted_step> fit_step(gpu::device d, const stage_options& asked, const gpu::budget& limits,
                                    std::size_t floor_rows = default_floor_rows);

}  // namespace penstock::train
