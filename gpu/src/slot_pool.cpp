#include <penstock/gpu/slot_pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace penstock::gpu {

slot_pool::slot_pool(std::size_t slots) : used_(slots, false) {
  if (slots == 0) throw std::invalid_argument("a slot pool needs at least one slot");
  for (std::size_t slot = 0; slot < slots; ++slot) free_.push_back(slot);
}

std::size_t slot_pool::take_oldest() {
  const std::size_t slot = free_.front();
  free_.pop_front();
  used_[slot] = true;
  peak_ = std::max(peak_, used_.size() - free_.size());
  return slot;
}

std::optional<std::size_t> slot_pool::try_acquire() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty() || !waiting_.empty()) return std::nullopt;
  return take_oldest();
}

std::optional<std::size_t> slot_pool::acquire(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (stop.stop_requested()) return std::nullopt;
  if (!free_.empty() && waiting_.empty()) return take_oldest();

  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t ticket = next_ticket_++;
  waiting_.push_back(ticket);
  const bool served = changed_.wait(lock, stop, [&] { return is_first(ticket); });
  waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::erase(waiting_, ticket);
  std::optional<std::size_t> slot;
  if (served) slot = take_oldest();
  // Whoever is first now may find another free slot, whether this one was served or gave up.
  if (!waiting_.empty() && !free_.empty()) changed_.notify_all();
  return slot;
}

void slot_pool::release(std::size_t slot) {
  {
    const std::scoped_lock lock(mutex_);
    if (slot >= used_.size() || !used_[slot])
      throw std::invalid_argument(fmt::format("slot {} of {} is not in use", slot, used_.size()));
    used_[slot] = false;
    free_.push_back(slot);
  }
  changed_.notify_all();
}

std::size_t slot_pool::in_use() const {
  const std::scoped_lock lock(mutex_);
  return used_.size() - free_.size();
}

std::size_t slot_pool::peak() const {
  const std::scoped_lock lock(mutex_);
  return peak_;
}

std::size_t slot_pool::waiting() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

double slot_pool::waited_seconds() const {
  const std::scoped_lock lock(mutex_);
  return waited_seconds_;
}

}  // namespace penstock::gpu
