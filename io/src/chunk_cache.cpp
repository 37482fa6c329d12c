#include "chunk_cache.hpp"

#include <algorithm>
#include <utility>

namespace penstock::io {

chunk_cache::chunk_cache(std::size_t slots, std::size_t slot_bytes)
    : slot_bytes_(slot_bytes), memory_(std::make_unique_for_overwrite<std::byte[]>(slots * slot_bytes)), slots_(slots) {
  found_.reserve(slots);
  for (std::size_t n = 0; n < slots; ++n) slots_[n].place = order_.insert(order_.end(), n);
}

std::optional<chunk_cache::lease> chunk_cache::acquire(const key& k, std::uint64_t rows) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = found_.find(k);
    if (found == found_.end()) break;
    slot& s = slots_[found->second];
    if (s.now == state::decoding) {
      changed_.wait(lock);
      continue;  // decoded, or given up
    }
    ++s.users;
    if (s.rows_left == 0) s.rows_left = s.rows;  // another pass over it
    order_.splice(order_.end(), order_, s.place);
    return lease(*this, found->second, memory_of(found->second), false);
  }
  const auto n = free_slot();
  if (!n) return std::nullopt;
  slot& s = slots_[*n];
  if (s.now == state::ready) found_.erase(s.k);
  s.k = k;
  s.now = state::decoding;
  s.users = 1;
  s.rows = s.rows_left = rows;
  found_[k] = *n;
  order_.splice(order_.end(), order_, s.place);
  return lease(*this, *n, memory_of(*n), true);
}

std::optional<std::size_t> chunk_cache::free_slot() const {
  const auto found = std::find_if(order_.begin(), order_.end(), [this](std::size_t n) { return slots_[n].users == 0; });
  if (found == order_.end()) return std::nullopt;
  return *found;
}

void chunk_cache::give_back(std::size_t n, bool decoded, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  slot& s = slots_[n];
  --s.users;
  if (!decoded) {
    found_.erase(s.k);
    s.now = state::empty;
    changed_.notify_all();
  }
  s.rows_left -= std::min(rows, s.rows_left);
  if (s.now == state::empty || s.rows_left == 0) order_.splice(order_.begin(), order_, s.place);
}

chunk_cache::lease::lease(lease&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      slot_(other.slot_),
      bytes_(other.bytes_),
      must_decode_(other.must_decode_),
      rows_(other.rows_) {}

chunk_cache::lease::~lease() {
  if (cache_) cache_->give_back(slot_, !must_decode_, rows_);
}

void chunk_cache::lease::publish() {
  const std::lock_guard lock(cache_->mutex_);
  cache_->slots_[slot_].now = state::ready;
  must_decode_ = false;
  cache_->changed_.notify_all();
}

}  // namespace penstock::io
