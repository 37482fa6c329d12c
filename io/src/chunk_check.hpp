#pragma once

#include "box.hpp"
#include "check_memory.hpp"
#include "chunk_undo.hpp"
#include "describe.hpp"
#include "failure.hpp"
#include "identifier.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::io {

/// What to throw for a chunk without filters whose stored size is not its own, and for any of which nothing is stored.
damage wrong_size(std::uint64_t stored, std::uint64_t chunk_bytes);
damage no_bytes(std::uint64_t chunk_bytes);

/// What libhdf5 would be about to read.
struct found_chunk {
  bool there = false;  ///< otherwise nothing is stored
  std::uint64_t bytes = 0;
  std::uint32_t mask = 0;
  std::span<const std::byte> front;  ///< what it begins with, as far as that was asked for
};

/// Looks at the stored chunks that libhdf5 is about to read, for what it does not check itself: it hands out memory
/// that it never wrote where fewer bytes are stored than a chunk has, reads past what is stored where a filter needs
/// more, and inflates without a bound.
///
/// A chunk that goes through no filter must have its exact size, and no chunk has no bytes. Of the filters deflate,
/// shuffle, fletcher32, szip, nbit and scaleoffset each must find what it reads, put out at most
/// chunk_undo::most_made(), and leave as many bytes as a chunk at least where the chain ends: from the one that was
/// applied last to the first other one. Deflate takes a build with libdeflate; what szip says of its length is looked
/// at in any, what it decodes to where make_szip() knows it.
///
/// Remembers chunks that it found sound, in at most 32 KiB. Thread-safe, by the guard.
class chunk_check {
 public:
  /// `d` and `memory` must outlive it.
  chunk_check(const dataset_description& d, check_memory& memory);
  ~chunk_check();

  /// Throws damage, with the rows of the chunk along `row_axis`, where one that `part` touches is not sound, and
  /// failure or std::bad_alloc where that cannot be found out. `dataset` is of a file that was opened with
  /// read_only_access. Takes the guard for each chunk anew.
  void look(hid_t dataset, const box& part, std::size_t row_axis);

  /// Bytes of a half of check_memory in which chunks of `d`, stored in `stored_bytes` at most, are looked at; 0 where
  /// none is undone.
  static std::size_t half_bytes(const dataset_description& d, std::uint64_t stored_bytes);

 private:
  void look_at(hid_t dataset, const extents& at);
  void look_into(hid_t dataset, const hsize_t* offset, const found_chunk& found);
  std::uint64_t number(const extents& at) const noexcept;
  bool is_plain(std::uint32_t mask, const extents& at) const noexcept;

  const dataset_description& d_;
  check_memory& memory_;
  std::uint64_t chunk_bytes_ = 0;
  chunk_undo filters_;
  std::vector<std::uint64_t> sound_;  // chunk n, as n + 1, at n % size; empty where chunks cannot be numbered
};

}  // namespace penstock::io
