#pragma once

#include "epoch_run.hpp"
#include "ground.hpp"

#include <penstock/pipeline/error.hpp>

#include <exception>
#include <span>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// The host's part of a block's way: reads its rows into its slot (or into the rings), and lets host transforms work on
/// them. Thread-safe for different blocks.
class block_reader {
 public:
  explicit block_reader(const ground& on) : on_(on) {}

  /// Fills the block, or leaves off where the run is over meanwhile. Throws pipeline::error that names stage and rows.
  void read(const epoch_run& run, std::uint64_t block) const;
  /// Lets host transform number `transform` work on the block. Throws pipeline::error with the transform's exception.
  void apply(const schedule& run, std::uint64_t block, std::size_t transform) const;
  /// Stored bytes of a block.
  std::uint64_t bytes_of(const block_place& place) const noexcept;

 private:
  /// Rows that the source's policy lets be left out are appended to `skipped`.
  void read_field(std::size_t field, std::span<const extent> extents, const epoch_run& run, std::uint64_t block,
                  std::vector<extent>& skipped) const;
  void convert(const read_conversion& how, std::uint64_t block, std::uint64_t rows) const;
  template <class F>
  void for_each_part(std::size_t field, std::span<const extent> extents, const schedule& run, std::uint64_t block,
                     F f) const;
  std::vector<block_field> fields_of(std::uint64_t block, std::span<const std::size_t> fields) const;

  const ground& on_;
};

/// What an error names of a piece: padding has no rows of its own, and is told by the epoch's last one.
piece named_rows(piece p, std::uint64_t epoch_rows);
/// For people: "rows 0-255, 512-767 and 3 more ranges".
std::string describe_rows(std::span<const extent> extents);

/// Rows that are read for a block.
std::vector<extent> rows_read(const order& rows, const block_place& place);
/// Rows at positions [first, first + count) of an epoch, as they come out.
std::vector<extent> rows_drawn(const order& rows, std::uint64_t epoch, std::uint64_t first, std::uint64_t count);

/// The error of a stage at a block: its sentence names the stage, the rows, the epoch, and file and dataset, then has
/// `cause`'s own.
std::exception_ptr stage_error(const ground& on, const std::string& stage, const block_place& place,
                               std::span<const extent> extents, std::exception_ptr cause);
/// Which rows the positions of a block_place are.
enum class counted : std::uint8_t { as_read, as_they_come_out };
/// The same where nobody is left to catch anything: the cause itself where saying more of it fails.
std::exception_ptr stage_error_or_cause(const ground& on, const char* stage, const block_place& place, counted how,
                                        std::exception_ptr cause) noexcept;
/// The same, of any work, at the block or before it. Where there are no rows, what failed before them did before the
/// end.
error located_error(const ground& on, const failed_work& work, const block_place& place,
                    std::span<const extent> extents, std::exception_ptr cause);

}  // namespace penstock::pipeline
