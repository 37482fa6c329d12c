#include "scratch.hpp"

#include <algorithm>
#include <new>

namespace penstock::io {

void scratch_sizes::include(const scratch_sizes& other) noexcept {
  stored_bytes = std::max(stored_bytes, other.stored_bytes);
  decoded_bytes = std::max(decoded_bytes, other.decoded_bytes);
  value_bytes = std::max(value_bytes, other.value_bytes);
  bounce_bytes = std::max(bounce_bytes, other.bounce_bytes);
  workspace.spares = std::max(workspace.spares, other.workspace.spares);
  workspace.spare_bytes = std::max(workspace.spare_bytes, other.workspace.spare_bytes);
  workspace.extra_bytes = std::max(workspace.extra_bytes, other.workspace.extra_bytes);
}

namespace {

std::byte* aligned_memory(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = std::aligned_alloc(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

}  // namespace

scratch::scratch(const scratch_sizes& sizes)
    : sizes_(sizes),
      decoded_(std::make_unique_for_overwrite<std::byte[]>(sizes.decoded_bytes)),
      values_(std::make_unique_for_overwrite<std::byte[]>(sizes.value_bytes)),
      stored_(aligned_memory(sizes.stored_bytes + page_bytes)),
      bounce_(aligned_memory(sizes.bounce_bytes)),
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
