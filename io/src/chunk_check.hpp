#pragma once

#include "box.hpp"
#include "check_memory.hpp"
#include "describe.hpp"
#include "failure.hpp"
#include "filters/decoder.hpp"
#include "identifier.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::io {

/// What to throw for a chunk without filters whose stored size is not its own, and for any of which nothing is stored.
damage wrong_size(std::uint64_t stored, std::uint64_t chunk_bytes);
damage no_bytes(std::uint64_t chunk_bytes);

/// Looks at the stored chunks that libhdf5 is about to read, for what it does not check itself: it hands out memory
/// that it never wrote where fewer bytes are stored than a chunk has, and inflates without a bound.
///
/// A chunk that goes through no filter must have its exact size, and no chunk has no bytes. Deflate, wherever in the
/// chain only deflate, shuffle and fletcher32 come after it, puts out at most most_inflated() bytes, and as many as a
/// chunk at least where the chain ends; this takes a build with libdeflate.
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

  /// Bytes that one filter may make of a chunk of `chunk_bytes`: between two of them there may be a little more than
  /// the chunk, and libhdf5 takes the chunk from the front of what is longer.
  static constexpr std::uint64_t most_inflated(std::uint64_t chunk_bytes) noexcept {
    return chunk_bytes + chunk_bytes / 2 + (std::uint64_t{1} << 20);
  }

  /// Bytes of a half of check_memory in which chunks of `d`, stored in `stored_bytes` at most, are looked at; 0 where
  /// none is undone.
  static std::size_t half_bytes(const dataset_description& d, std::uint64_t stored_bytes);

 private:
  void look_at(hid_t dataset, const extents& at);
  void undo(const check_memory::halves& memory, std::size_t stored_bytes, std::uint32_t mask);
  std::uint64_t number(const extents& at) const noexcept;
  bool is_plain(std::uint32_t mask, const extents& at) const noexcept;

  const dataset_description& d_;
  check_memory& memory_;
  std::uint64_t chunk_bytes_ = 0;
  struct undone {
    std::vector<std::unique_ptr<decoder>> stages;  // as the file has them; null where one is not looked into
    std::uint32_t deflates = 0;                    // bit n: filter n is a deflate that is looked into
  };
  static undone filters_of(const dataset_description& d);
  undone filters_;
  std::vector<std::uint64_t> sound_;  // chunk n, as n + 1, at n % size; empty where chunks cannot be numbered
};

}  // namespace penstock::io
