#pragma once

#include "box.hpp"
#include "byte_source.hpp"
#include "counters.hpp"
#include "scratch.hpp"

#include <penstock/io/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock::io {

/// Reads of one source that go straight to where the bytes belong; neighbours in file and memory become one.
class merged_reads {
 public:
  /// `s`: its memory for stored bytes, and for reads around the page cache, is used on the way.
  merged_reads(const byte_source& file, counters& count, const scratch& s) noexcept
      : file_(file), count_(count), scratch_(s) {}

  /// The rows of what is added from here on: a read that fails later names those of all that it would have read.
  void of_rows(row_range rows) noexcept { rows_ = rows; }
  void add(std::uint64_t offset, std::span<std::byte> out);
  /// To be called at the end: what was added is read by then. What the scratch holds of other reads is lost.
  void flush();

  /// Reads at once, in order with nothing that was added.
  void read_now(std::uint64_t offset, std::span<std::byte> out);

 private:
  bool detour_pays() const noexcept;
  void read_added();
  void read_by_detour();

  const byte_source& file_;
  counters& count_;
  std::uint64_t offset_ = 0;
  const scratch& scratch_;
  std::span<std::byte> out_;
  std::optional<row_range> rows_, added_rows_;  ///< of what comes, and of what lies at offset_
};

/// A box of values that lie unfiltered in a file.
struct stored_box {
  std::uint64_t offset = 0;  ///< of its first value
  std::size_t rank = 0;
  extents count{};
  extents strides{};  ///< in the file
  std::uint64_t value_bytes = 0;
};

/// Reads the box to `out`. What is contiguous in both goes there directly; else the scratch's stored memory takes the
/// bytes between the box's first and last value, in pieces that fit it and are not mostly unwanted.
void read_stored(const stored_box& stored, std::byte* out, const extents& out_strides, const scratch& s,
                 merged_reads& reads);

}  // namespace penstock::io
