#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace penstock::io {

/// Decoded chunks that reads cut, in a fixed number of slots: the rest of a chunk waits here for the read that needs
/// it. Two readers of one chunk share its decoding: the second waits for the first. A chunk whose rows were all given
/// out goes first, then the least recently used. Thread-safe.
class chunk_cache {
 public:
  struct key {
    std::uint64_t dataset = 0, chunk = 0;
    bool operator==(const key&) const = default;
  };

  chunk_cache(std::size_t slots, std::size_t slot_bytes);

  std::size_t slots() const noexcept { return slots_.size(); }
  std::size_t bytes() const noexcept { return slots_.size() * slot_bytes_; }

  /// A chunk in use: its slot is not taken away. Given up by the destructor; a chunk that was to be decoded and was not
  /// published is forgotten, and one of those who waited decodes it.
  class lease {
   public:
    lease(lease&& other) noexcept;
    lease& operator=(lease&&) = delete;
    ~lease();

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    /// The caller must fill bytes(), then call publish().
    bool must_decode() const noexcept { return must_decode_; }
    void publish();
    /// `rows` of the chunk were copied out.
    void used(std::uint64_t rows) noexcept { rows_ += rows; }

   private:
    friend class chunk_cache;
    lease(chunk_cache& cache, std::size_t slot, std::span<std::byte> bytes, bool must_decode) noexcept
        : cache_(&cache), slot_(slot), bytes_(bytes), must_decode_(must_decode) {}

    chunk_cache* cache_;
    std::size_t slot_;
    std::span<std::byte> bytes_;
    bool must_decode_;
    std::uint64_t rows_ = 0;
  };

  /// The chunk's slot; waits while another thread decodes it. Nothing where every slot is in use by others.
  /// `rows`: that the chunk holds. A thread holds one lease at a time.
  std::optional<lease> acquire(const key& k, std::uint64_t rows);

 private:
  enum class state : std::uint8_t { empty, decoding, ready };
  struct slot {
    key k;
    state now = state::empty;
    std::size_t users = 0;
    std::uint64_t rows = 0, rows_left = 0;
    std::list<std::size_t>::iterator place;  // in order_
  };
  struct hash {
    std::size_t operator()(const key& k) const noexcept {
      return static_cast<std::size_t>((k.dataset * 0x9e3779b97f4a7c15u) ^ (k.chunk * 0xc2b2ae3d27d4eb4fu));
    }
  };

  std::span<std::byte> memory_of(std::size_t n) const noexcept {
    return {memory_.get() + n * slot_bytes_, slot_bytes_};
  }
  std::optional<std::size_t> free_slot() const;
  void give_back(std::size_t n, bool decoded, std::uint64_t rows);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t slot_bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<slot> slots_;
  std::list<std::size_t> order_;  // the first to be taken first
  std::unordered_map<key, std::size_t, hash> found_;
};

}  // namespace penstock::io
