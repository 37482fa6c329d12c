#pragma once

#include "check_memory.hpp"
#include "describe.hpp"
#include "filters/decoder.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::io {

/// Undoes the filters of a stored chunk as far as it takes to tell whether libhdf5 would find in it what it reads: of
/// fletcher32, nbit, scaleoffset and szip it does not look whether there is as much as they need, and what a filter
/// does not fill is memory that it never wrote. Filters that are not known end the look.
class chunk_undo {
 public:
  chunk_undo() = default;  ///< of no chunk
  explicit chunk_undo(const dataset_description& d);

  /// What it takes to look at a chunk that was stored with `mask`.
  enum class needs {
    size,   ///< how much is stored
    front,  ///< and its first bytes, front_bytes or all
    whole,  ///< all of them
  };
  needs needed(std::uint32_t mask) const noexcept;
  static constexpr std::size_t front_bytes = 16;

  /// Bytes that one filter may make of a chunk of `chunk_bytes`: between two of them there may be a little more than
  /// the chunk, and libhdf5 takes the chunk from the front of what is longer.
  static constexpr std::uint64_t most_made(std::uint64_t chunk_bytes) noexcept {
    return chunk_bytes + chunk_bytes / 2 + (std::uint64_t{1} << 20);
  }

  /// Bytes of a half of check_memory for chunks of which the whole is looked at, stored in `stored_bytes` at most.
  std::size_t half_bytes(std::uint64_t stored_bytes) const noexcept;

  /// Throws damage where a chunk stored in `bytes` is not what libhdf5 can read. `front`: as much as needed() says;
  /// where that is the whole, it lies in memory.stored.
  void look(std::uint64_t bytes, std::span<const std::byte> front, std::uint32_t mask, check_memory& checks,
            const check_memory::halves& memory) const;

 private:
  enum class kind { unknown, nothing, decoded, deflate, szip, nbit, scaleoffset };
  struct stage {
    kind how = kind::unknown;
    std::unique_ptr<decoder> undo;  ///< null where there is none in this build, or its output is not looked at
  };
  struct content;  // what lies between two filters
  bool undo(std::size_t n, content& c, check_memory& checks) const;
  void undo_szip(const stage& s, content& c, check_memory& checks) const;
  void undo_packed(std::size_t n, content& c) const;

  std::vector<filter> filters_;
  std::vector<stage> stages_;  // as the file has them
  std::uint64_t chunk_bytes_ = 0;
};

}  // namespace penstock::io
