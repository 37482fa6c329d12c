#include "handover.hpp"

#include "watching.hpp"

#include <penstock/pipeline/error.hpp>

#include <chrono>

namespace penstock::pipeline {
namespace {

constexpr std::chrono::milliseconds between_calls{100};  // of what the consumer does while it waits

}  // namespace

handover::handover(gpu::device device, bool watchful, consumer_help* help, fault_seam faults)
    : host_(device.is_host()), watchful_(watchful), help_(help), events_(device, std::move(faults)) {}

void handover::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure_)
    ++later_failures_;
  else
    failure_ = std::move(failure);
  over_ = true;
  conductor_.notify_all();
  consumer_.notify_all();
}

void handover::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  over_ = true;
  conductor_.notify_all();
  consumer_.notify_all();
}

bool handover::ended() const { return over_; }

std::exception_ptr handover::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::uint64_t handover::later_failures() const {
  const std::lock_guard lock(mutex_);
  return later_failures_;
}

gpu::event* handover::take_event() {
  const std::lock_guard lock(mutex_);
  return events_.take();
}

/// Wakes whoever waits, once the lock is free: it would have to wait for that, and be woken twice.
void handover::wake(std::unique_lock<std::mutex>& lock, std::condition_variable& who, bool has_come) {
  lock.unlock();
  if (has_come) who.notify_all();
}

// Events are recorded outside the lock: the driver may take its time, and the other side must not wait for it.
void handover::publish(gpu::stream_ref stream, std::uint64_t end) {
  gpu::event* const event = host_ ? nullptr : record_mark(stream);
  std::unique_lock lock(mutex_);
  if (event) published_marks_.push_back({end, event});
  published_ = end;
  wake(lock, consumer_, end >= wanted_rows_);
}

void handover::block_came_out() {
  std::unique_lock lock(mutex_);
  wake(lock, conductor_, ++blocks_out_ >= wanted_blocks_);
}

handover::news handover::wait(std::uint64_t blocks, std::uint64_t room, std::chrono::microseconds most) {
  std::unique_lock lock(mutex_);
  wanted_room_ = room;
  wanted_blocks_ = blocks;
  const auto changed = [&] { return blocks_out_ >= blocks || released_ >= room || over_; };
  if (most.count() == 0)
    conductor_.wait(lock, changed);
  else
    conductor_.wait_for(lock, most, changed);
  wanted_room_ = wanted_blocks_ = nothing;
  return look();
}

bool handover::is_free(std::uint64_t position) {
  while (held_ < position) {
    mark next{};
    {
      const std::lock_guard lock(mutex_);
      if (released_marks_.empty()) return false;
      next = released_marks_.front();
    }
    if (!next.event->done()) return false;  // asked without the lock: the driver may take its time
    const std::lock_guard lock(mutex_);
    released_marks_.pop_front();
    events_.give_back(next.event);
    held_ = next.end;
  }
  return true;
}

void handover::hold_until_free(std::span<const gpu::stream_ref> streams, std::uint64_t position) {
  if (host_) return;
  const std::lock_guard lock(mutex_);
  while (held_ < position && !released_marks_.empty()) {
    const mark next = released_marks_.front();
    for (const gpu::stream_ref stream : streams) next.event->hold(stream);  // where it fails, the mark stays
    released_marks_.pop_front();
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

void handover::watch_for_rows(std::uint64_t end) const {
  const auto until = std::chrono::steady_clock::now() + watch;
  while (published_ < end && !over_ && std::chrono::steady_clock::now() < until) pause_processor();
}

/// Reads blocks meanwhile. Where there are none, others will soon have read theirs: where it has a processor to itself,
/// it watches for as long as that may take.
void handover::help_until_rows(std::uint64_t end, const std::function<void()>& meanwhile) {
  using outcome = consumer_help::outcome;
  auto now = std::chrono::steady_clock::now(), until = now + watch, called = now;
  while (published_ < end && !over_) {
    const outcome what = help_->read_block(end);
    now = std::chrono::steady_clock::now();
    if (what == outcome::read) {
      read_until_ = now;
      until = now + watch;
    } else {
      if (what == outcome::long_wait || !watchful_ || now >= until) return;
      pause_processor();
    }
    if (meanwhile && now - called >= between_calls) {
      meanwhile();
      called = now;
    }
  }
}

void handover::sleep_until_rows(std::unique_lock<std::mutex>& lock, std::uint64_t end,
                                const std::function<void()>& meanwhile) {
  const auto there = [&] { return published_ >= end || over_; };
  wanted_rows_ = end;
  if (!meanwhile) consumer_.wait(lock, there);
  while (!there()) {
    if (consumer_.wait_for(lock, between_calls, there)) break;
    lock.unlock();
    meanwhile();
    lock.lock();
  }
  wanted_rows_ = nothing;
}

bool handover::wait_for_rows(gpu::stream_ref stream, std::uint64_t end, device_stall& stall,
                             const std::function<void()>& meanwhile) {
  const bool late = published_ < end;
  if (late && help_)
    help_until_rows(end, meanwhile);
  else if (late && watchful_)
    watch_for_rows(end);
  std::unique_lock lock(mutex_);
  throw_if_over(lock);
  if (published_ < end) {
    sleep_until_rows(lock, end, meanwhile);
    throw_if_over(lock);
  }
  if (host_) {
    ready_ = published_;
    return late;
  }
  if (published_marks_.empty()) return late;  // waited for before
  // What the device has already done needs no waiting, and the last mark speaks for all before it. (A consumer that
  // was late need not ask: the copy has only just been issued.)
  const mark last = published_marks_.back();
  lock.unlock();
  const bool all_done = !late && last.event->done();
  lock.lock();
  mark covering = last;
  while (!published_marks_.empty() && ready_ < (all_done ? last.end : end)) {
    covering = published_marks_.front();
    published_marks_.pop_front();
    ready_ = covering.end;
    if (all_done || ready_ < end) events_.give_back(covering.event);
  }
  lock.unlock();
  if (all_done) {
    stall.pass();
    return late;
  }
  stall.hold(stream, *covering.event);
  lock.lock();
  events_.give_back(covering.event);
  return late;
}

gpu::event* handover::record_mark(gpu::stream_ref stream) {
  gpu::event* const event = take_event();
  event->record(stream);
  return event;
}

void handover::release(std::span<gpu::event* const> marks, gpu::stream_ref stream, std::uint64_t end) {
  gpu::event* const last = host_ ? nullptr : record_mark(stream);
  std::unique_lock lock(mutex_);
  for (gpu::event* const event : marks) {
    if (host_)
      events_.give_back(event);
    else
      released_marks_.push_back({released_, event});
  }
  if (last) released_marks_.push_back({end, last});  // the rows are free once all of these were waited for
  released_ = end;
  wake(lock, conductor_, end >= wanted_room_);
  if (help_) help_->rows_are_free();
}

}  // namespace penstock::pipeline
