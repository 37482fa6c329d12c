#include "reader_tuner.hpp"

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr std::chrono::milliseconds least_period{40};
constexpr std::uint64_t blocks_each = 4;  // of a period, for each reader: its rate is then known to a few percent
constexpr double clearly_faster = 1.05;   // more than what neighbours on the machine make of it
constexpr std::uint64_t first_pause = 4, most_doublings = 6;  // periods; at most 256, ten seconds

}  // namespace

reader_tuner::reader_tuner(std::size_t start, std::size_t most)
    : start_(start), most_(std::max(start, most)), readers_(start), rates_(most_ + 1), settled_(start) {}

void reader_tuner::begin_run() {
  const std::lock_guard lock(mutex_);
  if (on_trial_) settle_on(settled_);
  after_waiting_ = false;
  began_ = {};
  begin_period(blocks_each * readers_);  // the first blocks of a run meet cold threads
}

void reader_tuner::begin_period(std::uint64_t blocks_to_skip) {
  skip_ = blocks_to_skip;
  blocks_ = after_waiting_blocks_ = 0;
  after_waiting_time_ = after_none_time_ = {};
}

std::size_t reader_tuner::block_read(clock::time_point now, bool waiting) {
  const std::lock_guard lock(mutex_);
  if (most_ == 1) return 1;
  const clock::duration since_last = std::max(now - last_, clock::duration(0));
  if (skip_ > 0) {
    --skip_;
    began_ = now;
  } else {
    ++blocks_;
    if (after_waiting_) ++after_waiting_blocks_;
    (after_waiting_ ? after_waiting_time_ : after_none_time_) += since_last;
  }
  last_ = std::max(last_, now);
  after_waiting_ = waiting;
  if (blocks_ >= blocks_each * readers_ && now - began_ >= least_period) {
    judge();
    began_ = now;
  }
  return readers_;
}

/// Decides after a period. The first blocks that follow a change were begun before it.
void reader_tuner::judge() {
  const std::size_t before = readers_;
  const bool holds_up = after_waiting_time_.count() > 0 && after_waiting_time_ >= 3 * after_none_time_;
  const double rate = holds_up ? static_cast<double>(after_waiting_blocks_) / to_seconds(after_waiting_time_)
                               : static_cast<double>(blocks_) / to_seconds(after_waiting_time_ + after_none_time_);
  if (holds_up) rates_[readers_] = rate;
  if (on_trial_) {
    judge_trial(rate, holds_up);
  } else if (holds_up) {
    settled_rate_ = rate;
    if (pause_ > 0)
      --pause_;
    else
      try_next();
  }
  begin_period(readers_ == before ? 0 : std::max(readers_, before));
}

void reader_tuner::judge_trial(double rate, bool holds_up) {
  if (rate > clearly_faster * settled_rate_) {
    settled_ = readers_;
    settled_rate_ = rate;
    failures_ = 0;
    on_trial_ = false;
    if (holds_up) try_next();
    return;
  }
  settle_on(settled_);
  pause_ = first_pause << std::min(failures_++, most_doublings);
  upwards_ = !upwards_;
}

void reader_tuner::settle_on(std::size_t readers) {
  readers_ = readers;
  on_trial_ = false;
}

/// Readers of the next step in the direction at hand; as many as now where there is none. Fewer are tried in small
/// steps: where they read more slowly, that is felt.
std::size_t reader_tuner::next_step() const {
  if (upwards_) return std::min(most_, readers_ + std::max<std::size_t>(1, readers_ / 4));
  return readers_ - std::min(readers_ - 1, std::max<std::size_t>(1, readers_ / 8));
}

bool reader_tuner::try_next() {
  if (next_step() == readers_) upwards_ = !upwards_;
  if (next_step() == readers_) return false;
  readers_ = next_step();
  on_trial_ = true;
  return true;
}

reader_tuner::findings reader_tuner::read() const {
  const std::lock_guard lock(mutex_);
  findings f{on_trial_ ? settled_ : readers_, start_, most_, {}};
  for (std::size_t n = 1; n < rates_.size(); ++n)
    if (rates_[n] > 0) f.measured.push_back({n, rates_[n]});
  return f;
}

}  // namespace penstock::pipeline
