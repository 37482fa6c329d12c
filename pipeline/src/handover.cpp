#include "handover.hpp"

#include <penstock/pipeline/error.hpp>

#include <chrono>

namespace penstock::pipeline {

gpu::event* event_pool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<gpu::event>(device_, false, faults_));
    return all_.back().get();
  }
  gpu::event* event = free_.back();
  free_.pop_back();
  return event;
}

handover::handover(gpu::device device, fault_seam faults)
    : host_(device.is_host()), events_(device, std::move(faults)) {}

void handover::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure_)
    ++later_failures_;
  else
    failure_ = std::move(failure);
  conductor_.notify_all();
  consumer_.notify_all();
}

void handover::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  conductor_.notify_all();
  consumer_.notify_all();
}

bool handover::ended() const {
  const std::lock_guard lock(mutex_);
  return stopped_ || failure_;
}

std::exception_ptr handover::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::uint64_t handover::later_failures() const {
  const std::lock_guard lock(mutex_);
  return later_failures_;
}

void handover::publish(gpu::stream_ref stream, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (!host_) {
    gpu::event* event = events_.take();
    event->record(stream);
    published_marks_.push_back({end, event});
  }
  published_ = end;
  consumer_.notify_all();
}

void handover::block_came_out() {
  const std::lock_guard lock(mutex_);
  ++blocks_out_;
  conductor_.notify_all();
}

handover::news handover::look() const {
  const std::lock_guard lock(mutex_);
  return {blocks_out_, released_, stopped_ || failure_};
}

handover::news handover::wait(const news& before, unsigned microseconds) const {
  std::unique_lock lock(mutex_);
  const auto changed = [&] {
    return blocks_out_ != before.blocks_out || released_ != before.released || (stopped_ || failure_) != before.over;
  };
  if (microseconds == 0)
    conductor_.wait(lock, changed);
  else
    conductor_.wait_for(lock, std::chrono::microseconds(microseconds), changed);
  return {blocks_out_, released_, stopped_ || failure_};
}

void handover::hold_until_free(std::span<const gpu::stream_ref> streams, std::uint64_t position) {
  if (host_) return;
  const std::lock_guard lock(mutex_);
  while (held_ < position && !released_marks_.empty()) {
    const mark next = released_marks_.front();
    released_marks_.pop_front();
    for (const gpu::stream_ref stream : streams) next.event->hold(stream);
    events_.give_back(next.event);
    held_ = next.end;
  }
}

void handover::throw_if_over(std::unique_lock<std::mutex>& lock) const {
  if (failure_) {
    const std::exception_ptr failure = failure_;
    lock.unlock();
    std::rethrow_exception(failure);
  }
  if (stopped_) throw stopped();
}

bool handover::wait_for_rows(gpu::stream_ref stream, std::uint64_t end) {
  std::unique_lock lock(mutex_);
  throw_if_over(lock);
  const bool late = published_ < end;
  if (late) {
    consumer_.wait(lock, [&] { return published_ >= end || failure_ || stopped_; });
    throw_if_over(lock);
  }
  // One wait covers all rows up to its mark: the batches of a block cost one wait together.
  while (!host_ && waited_for_ < end) {
    const mark next = published_marks_.front();
    published_marks_.pop_front();
    if (next.end >= end) next.event->hold(stream);
    events_.give_back(next.event);
    waited_for_ = next.end;
  }
  return late;
}

bool handover::has_rows(std::uint64_t end) const {
  const std::lock_guard lock(mutex_);
  return published_ >= end;
}

void handover::release(std::span<const gpu::stream_ref> streams, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (!host_) {
    for (const gpu::stream_ref stream : streams) {
      gpu::event* event = events_.take();
      event->record(stream);
      released_marks_.push_back({released_, event});
    }
    if (!streams.empty()) released_marks_.back().end = end;  // the rows are free once all of these were waited for
  }
  released_ = end;
  conductor_.notify_all();
}

}  // namespace penstock::pipeline
