#include "scratch.hpp"

#include <algorithm>

namespace penstock::io {

void scratch_sizes::include(const scratch_sizes& other) noexcept {
  stored_bytes = std::max(stored_bytes, other.stored_bytes);
  decoded_bytes = std::max(decoded_bytes, other.decoded_bytes);
  workspace.spares = std::max(workspace.spares, other.workspace.spares);
  workspace.spare_bytes = std::max(workspace.spare_bytes, other.workspace.spare_bytes);
  workspace.extra_bytes = std::max(workspace.extra_bytes, other.workspace.extra_bytes);
}

scratch::scratch(const scratch_sizes& sizes)
    : sizes_(sizes),
      stored_(std::make_unique_for_overwrite<std::byte[]>(sizes.stored_bytes)),
      decoded_(std::make_unique_for_overwrite<std::byte[]>(sizes.decoded_bytes)),
      workspace_(sizes.workspace) {}

scratch_pool::scratch_pool(std::size_t count, const scratch_sizes& sizes) {
  all_.reserve(count);
  free_.reserve(count);
  for (std::size_t n = 0; n < count; ++n) free_.push_back(&all_.emplace_back(sizes));
}

scratch_pool::lease scratch_pool::borrow() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [this] { return !free_.empty(); });
  scratch* s = free_.back();
  free_.pop_back();
  return lease(s, give_back{this});
}

void scratch_pool::give_back::operator()(scratch* s) const noexcept {
  {
    const std::lock_guard lock(pool->mutex_);
    pool->free_.push_back(s);
  }
  pool->returned_.notify_one();
}

}  // namespace penstock::io
