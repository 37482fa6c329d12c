#include "shared_reading.hpp"

#include "start_thread.hpp"

#include <penstock/gpu/memory.hpp>

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <new>
#include <system_error>

namespace penstock::pipeline {
namespace {

// A read that takes no longer is no wait to speak of: from the page cache, a block of 1 MiB takes 0.1 to 0.3 ms.
constexpr std::chrono::milliseconds short_read{1};

}  // namespace

shared_reading::shared_reading(const ground& on, statistics& count, trace_log* trace)
    : on_(on),
      count_(count),
      trace_(trace),
      stages_(on, count, trace),
      padding_(on.device(), false, on.parts->faults),
      consumer_(on.device(), false, on.parts->faults),
      places_(on.sizes.threads) {
  own_.reserve(on.sizes.most_threads);
  own_.push_back(start_thread("reading", [this] { loop(); }));
  const std::lock_guard lock(mutex_);
  make_threads(places_);
  places_ = std::min(places_, own_.size());
}

shared_reading::~shared_reading() {
  stop();
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    to_read_.notify_all();
  }
  for (std::thread& thread : own_) thread.join();
}

/// A system that gives no more threads, or no memory for them, leaves it at those that there are.
void shared_reading::make_threads(std::size_t readers) try {
  while (own_.size() < readers) own_.emplace_back([this] { loop(); });
} catch (const std::system_error&) {
} catch (const std::bad_alloc&) {
}

void shared_reading::start(std::shared_ptr<epoch_run> next) {
  const std::lock_guard lock(mutex_);
  run_ = std::move(next);
  opened_ = let_in_ = taken_ = arrived_ = emitted_ = wanted_ = 0;
  there_.clear();
  count_.begin_run(clock::now());
  advance();
}

void shared_reading::stop() {
  std::unique_lock lock(mutex_);
  if (run_) run_->between.stop();
  idle_.wait(lock, [&] { return at_work_ == 0; });
  end_run_if_done();
}

void shared_reading::end_run_if_done() {
  if (!run_ || at_work_ > 0 || (emitted_ < run_->plan.end() && !run_->between.ended())) return;
  count_.end_run(clock::now());
  run_.reset();
}

void shared_reading::loop() {
  prctl(PR_SET_NAME, "penstock-reader");
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (may_read(reader::own)) {
      ++own_at_work_;
      read_next(lock);
      --own_at_work_;
    } else {
      ++asleep_;
      to_read_.wait(lock, [&] { return quit_ || may_read(reader::own); });
      --asleep_;
    }
  }
}

consumer_help::outcome shared_reading::read_block(std::uint64_t end) {
  std::unique_lock lock(mutex_);
  wanted_ = end;
  advance();
  if (!reads_are_short()) return outcome::long_wait;
  if (!may_read(reader::consumer)) return outcome::short_wait;
  read_next(lock);
  return outcome::read;
}

/// While much is ready for the consumer, readers that sleep are let sleep on, and woken for several blocks together.
void shared_reading::rows_are_free() {
  const std::lock_guard lock(mutex_);
  if (run_ && !is_well_supplied()) advance();
}

bool shared_reading::is_well_supplied() const {
  return reads_are_short() && emitted_ >= wanted_ && emitted_ - run_->between.look().released > on_.sizes.ring_rows / 2;
}

/// Most of them, lately: one that was interrupted is no sign of a slow disk.
bool shared_reading::reads_are_short() const { return std::popcount(short_reads_) > 4; }

bool shared_reading::may_read(reader who) const {
  if (!run_ || taken_ == let_in_ || at_work_ >= places_ || run_->between.ended()) return false;
  if (who == reader::consumer) return reads_are_short();
  return !reads_are_short() || own_at_work_ < std::max<std::size_t>(1, places_ - 1);
}

/// Reads the block that is first in the line, without the lock.
void shared_reading::read_next(std::unique_lock<std::mutex>& lock) {
  epoch_run& run = *run_;  // stays while anybody is at work
  const std::uint64_t block = taken_;
  try {
    there_.push_back(false);
  } catch (...) {
    return run.between.fail(
        stage_error_or_cause(on_, "read", run.plan.block(block), counted::as_read, std::current_exception()));
  }
  ++taken_;
  ++at_work_;
  if (asleep_ > 0 && may_read(reader::own)) to_read_.notify_one();
  lock.unlock();
  const auto start = clock::now();
  stages_.read(run, block);
  const auto read_time = clock::now() - start;
  lock.lock();
  --at_work_;
  adapt(read_time);
  came_in(block);
  advance();
  if (at_work_ == 0) idle_.notify_all();
}

/// How many read, and who, follows from what reading takes.
void shared_reading::adapt(clock::duration read_time) {
  short_reads_ = static_cast<std::uint8_t>(short_reads_ << 1 | (read_time <= short_read ? 1 : 0));
  if (!on_.tries_readers) return;
  const std::size_t wanted = std::max<std::size_t>(1, stages_.readers_after(taken_ < let_in_));
  make_threads(wanted);
  places_ = std::min(wanted, own_.size());
}

void shared_reading::came_in(std::uint64_t block) {
  there_[block - arrived_] = true;
  const auto now = clock::now();
  stamps& times = run_->times;
  for (; !there_.empty() && there_.front(); there_.pop_front(), ++arrived_)
    for (const std::size_t point : {times.of().came_out(), times.of().arrived()}) times.set(arrived_, point, now);
}

/// Does what can be done since rows came back or blocks came in.
void shared_reading::advance() {
  if (!run_) return;
  put_out();
  let_in();
  if (asleep_ > 0 && may_read(reader::own)) to_read_.notify_one();
  end_run_if_done();
}

/// Lets blocks into the line that have room in the ring. How long one waits for that is charged to the consumer.
void shared_reading::let_in() {
  epoch_run& run = *run_;
  const std::uint64_t room = run.between.look().released + on_.sizes.ring_rows;
  for (; let_in_ < run.plan.blocks(); ++let_in_) {
    const block_place place = run.plan.block(let_in_);
    const bool has_room = run.plan.ring_position(place) + place.rows <= room;
    if (!has_room && opened_ > let_in_) return;
    const auto now = clock::now();
    if (opened_ == let_in_) {
      ++opened_;
      run.times.open(let_in_, now);
      run.times.set(let_in_, way::has_slot, now);
      waits_since_ = now;
    }
    if (!has_room) return count_.no_rows.begin(now);
    count_.no_rows.end(now);
    if (trace_ && now != waits_since_)
      trace_->add(trace_log::track::entrance,
                  {"waits for free rows", waits_since_, now, let_in_, place.rows, place.epoch});
    run.times.set(let_in_, way::let_in, now);
    count_.flow[0].arrive(now);
  }
}

/// Publishes rows as far as blocks are there, with the padding between epochs as far as there is room.
void shared_reading::put_out() {
  epoch_run& run = *run_;
  const std::uint64_t before = emitted_, released = run.between.look().released;
  const std::uint64_t limit = std::min(run.plan.end(), released + on_.sizes.ring_rows);
  while (emitted_ < limit) {
    const piece p = run.plan.piece_at(emitted_, limit);
    if (p.blocks_needed > arrived_) break;
    const std::uint64_t end = p.ring_first + p.rows;
    if (p.padding) {
      pad(p);
    } else {
      const auto now = clock::now();
      run.times.take_piece(p.blocks_needed, end, now);
      run.times.set_piece(run.times.of().gathered(), now);
    }
    emitted_ = end;
  }
  if (emitted_ == before) return;
  count_.ring_rows_in_use.see(emitted_ - released);
  run.between.publish(padding_, emitted_);
}

/// Zeros after the last row of an epoch, where batches are padded.
void shared_reading::pad(const piece& p) {
  if (on_.parts->batch.last != last_batch::pad) return;
  try {
    for (const std::size_t field : on_.fields.batch)
      gpu::fill(padding_, on_.rings[field].at(p.ring_first), 0, p.rows * on_.fields.device[field].row_bytes());
  } catch (...) {
    const piece named = named_rows(p, on_.rows.rows());
    run_->between.fail(stage_error_or_cause(on_, "padding", {named.epoch, named.window, named.first, named.rows},
                                            counted::as_they_come_out, std::current_exception()));
  }
}

}  // namespace penstock::pipeline
