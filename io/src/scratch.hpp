#pragma once

#include "filters/decoder.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace penstock::io {

inline constexpr std::size_t page_bytes = 4096;

/// Sizes of what one read at a time needs.
struct scratch_sizes {
  std::size_t stored_bytes = 0;   ///< as read from the file
  std::size_t decoded_bytes = 0;  ///< a chunk, or a piece that libhdf5 read
  std::size_t value_bytes = 0;    ///< values that shrink when they are converted
  std::size_t bounce_bytes = 0;   ///< of reads around the page cache
  workspace_sizes workspace;      ///< of the decoders

  /// Large enough for both.
  void include(const scratch_sizes& other) noexcept;
  std::size_t bytes() const noexcept {
    return page_bytes + stored_bytes + decoded_bytes + value_bytes + bounce_bytes + workspace.bytes();
  }
};

/// Memory of one read.
class scratch {
 public:
  explicit scratch(const scratch_sizes& sizes);

  /// For what lies at `offset` of a file: at the same place of a page. Processors copy fastest between such places; one
  /// (AMD's EPYC, Zen 4) takes six times longer where the target lies a few bytes further on.
  std::span<std::byte> stored(std::uint64_t offset) const noexcept {
    return {stored_.get() + offset % page_bytes, sizes_.stored_bytes};
  }
  std::span<std::byte> decoded() const noexcept { return {decoded_.get(), sizes_.decoded_bytes}; }
  std::span<std::byte> values() const noexcept { return {values_.get(), sizes_.value_bytes}; }
  /// Aligned to pages.
  std::span<std::byte> bounce() const noexcept { return {bounce_.get(), sizes_.bounce_bytes}; }
  decode_workspace& workspace() noexcept { return workspace_; }

 private:
  scratch_sizes sizes_;
  std::unique_ptr<std::byte[]> decoded_, values_;
  struct free_aligned {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte[], free_aligned> stored_, bounce_;
  decode_workspace workspace_;
};

/// A fixed number of scratches, lent one by one. Thread-safe.
class scratch_pool {
 public:
  scratch_pool(std::size_t count, const scratch_sizes& sizes);

  struct give_back {
    scratch_pool* pool;
    void operator()(scratch* s) const noexcept;
  };
  using lease = std::unique_ptr<scratch, give_back>;
  /// Waits until one is free.
  lease borrow();

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<scratch> all_;
  std::vector<scratch*> free_;
};

}  // namespace penstock::io
