#include "conductor.hpp"

#include "start_thread.hpp"
#include "watching.hpp"

#include <penstock/pipeline/error.hpp>

#include <sys/prctl.h>

#include <algorithm>
#include <array>

namespace penstock::pipeline {
namespace {

// How often the device is asked how far it is: about once in a block's time on a fast link. Each question takes the
// driver's lock, which whoever launches kernels wants too.
constexpr std::size_t link_bytes_per_microsecond = 45'000;
constexpr std::size_t least_poll_microseconds = 5, most_poll_microseconds = 50;
// While so many blocks are on the link, it is worth waiting for a second block: two take as many calls as one.
constexpr std::uint64_t enough_in_copy = 3;
constexpr unsigned long timer_slack_nanoseconds = 1000;

}  // namespace

conductor::conductor(const ground& on, statistics& count, trace_log* trace)
    : on_(on),
      count_(count),
      trace_(trace),
      stages_(on, count, trace),
      host_(on.device().is_host()),
      watchful_(on.sizes.watchful),
      poll_(std::clamp(on.sizes.slot_bytes / link_bytes_per_microsecond, least_poll_microseconds,
                       most_poll_microseconds)),
      copy_(on.device(), true, on.parts->faults),
      work_(on.device(), true, on.parts->faults),
      consumer_(on.device(), false, on.parts->faults),
      gather_rows_(work_),
      copied_(on.device(), on.parts->faults),
      images_filled_(on.device(), on.parts->faults),
      images_used_(on.device(), on.parts->faults),
      straight_filled_(on.device(), on.parts->faults) {
  has_straight_ = std::any_of(on.sizes.straight.begin(), on.sizes.straight.end(), [](bool s) { return s; });
  has_device_work_ = !on.fields.device_transforms.empty() ||
                     std::any_of(on.sizes.straight.begin(), on.sizes.straight.end(), [](bool s) { return !s; });
  if (has_straight_) writers_.push_back(copy_);
  if (has_device_work_) writers_.push_back(work_);

  std::vector<flow::stage> stages;
  stages.push_back({on.sizes.threads, [this](std::uint64_t block) { stages_.read(*current_, block); }});
  for (std::size_t t = 0; t < on.fields.host_transforms.size(); ++t)
    stages.push_back({on.fields.host_transforms[t].concurrency,
                      [this, t](std::uint64_t block) { stages_.transform(*current_, block, t); }});
  flow::reading how{.apart = !host_, .watchful = watchful_, .readers = {}};
  if (on.tries_readers) how.readers = [this](bool waiting) { return stages_.readers_after(waiting); };
  flow_ = std::make_unique<flow>(
      on.sizes.threads, std::move(stages), [this](std::uint64_t block) { came_out(block); }, std::move(how));
  thread_ = start_thread("the work on the device", [this] { loop(); });
}

conductor::~conductor() {
  stop();
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void conductor::came_out(std::uint64_t block) {
  const auto now = clock::now();
  current_->times.set(block, current_->times.of().came_out(), now);
  count_.hands.arrive(now);
  current_->between.block_came_out();
}

void conductor::note(trace_log::track where, const char* name, clock::time_point begin, clock::time_point end,
                     std::uint64_t block, std::uint64_t rows, std::uint64_t epoch) const {
  if (trace_) trace_->add(where, {name, begin, end, block, rows, epoch});
}

void conductor::start(std::shared_ptr<epoch_run> next) {
  const std::lock_guard lock(mutex_);
  run_ = last_ = std::move(next);
  count_.begin_run(clock::now());  // before the consumer may pause it
  changed_.notify_all();
}

void conductor::stop() {
  std::unique_lock lock(mutex_);
  if (run_) run_->between.stop();
  changed_.wait(lock, [&] { return !run_; });
}

void conductor::wait_for_users(std::span<const gpu::stream_ref> consumers) {
  // Rows that came back, and were not needed again, may still be in use on streams that are not among the consumers.
  if (last_) last_->between.hold_until_free(std::array<gpu::stream_ref, 2>{copy_, work_}, handover::nothing);
  for (const gpu::stream_ref stream : consumers) {
    gpu::event used(on_.device(), gpu::event_use::order, on_.parts->faults);
    used.record(stream);
    wait_for(used);
  }
  last_.reset();
}

void conductor::loop() {
  prctl(PR_SET_NAME, "penstock-device");
  prctl(PR_SET_TIMERSLACK, timer_slack_nanoseconds, 0, 0, 0);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return run_ || quit_; });
      if (!run_) return;
      current_ = run_;
    }
    try {
      conduct();
    } catch (...) {
      current_->between.fail(located(std::current_exception()));
    }
    flow_->drain();
    try {
      fence();
    } catch (...) {
      current_->between.fail(located(std::current_exception()));
    }
    count_.end_run(clock::now());
    const std::lock_guard lock(mutex_);
    current_.reset();
    run_.reset();
    changed_.notify_all();
  }
}

/// Waits for copies and kernels in flight: afterwards slots and rings may be used for something else. An error of the
/// one is no reason not to wait for the other.
void conductor::fence() {
  try {
    copy_.synchronize();
  } catch (...) {
    try {
      work_.synchronize();
    } catch (...) {  // the first error is told
    }
    throw;
  }
  work_.synchronize();
}

void conductor::conduct() {
  epoch_run& now = *current_;
  slots_ = on_.slots;
  images_ = on_.images;
  issued_ = arrived_ = emitted_ = in_copy_ = blocks_put_out_ = opened_ = has_slot_ = 0;
  doing_ = {};
  asked_ = asked_place_ = held_back_since_ = {};
  for (stream_marks* marks : {&copied_, &images_filled_, &images_used_, &straight_filled_}) marks->reset();
  // Once for the thread would do; here an error is the run's.
  gpu::work_beside_captures(on_.device(), on_.parts->faults.get());
  clock::time_point progressed;  // when there was last something to do
  handover::news news = now.between.look();
  while (!news.over) {
    bool progress = issue(news.released);
    if (is_worth_issuing(news.blocks_out)) progress |= copy_blocks(news.blocks_out);
    progress |= emit(news.released);
    progress |= reap();
    if (emitted_ == now.plan.end() && !copying()) return;
    if (progress) {
      news = now.between.look();
      progressed = {};
      continue;
    }
    const auto start = clock::now();
    if (progressed == clock::time_point{}) progressed = start;
    wait_sum& idle = count_.idle[static_cast<std::size_t>(held_up_by(news))];
    idle.begin(start);
    news = wait(news, watchful_ && start - progressed < watch);
    idle.end(clock::now());
  }
}

/// Whether blocks that came out are worth their calls to the driver now, or a neighbour should join them.
bool conductor::is_worth_issuing(std::uint64_t came_out) const {
  return host_ || came_out != arrived_ + 1 || came_out == current_->plan.blocks() ||
         in_copy_ < slots_.given_back() + enough_in_copy;
}

/// Waits for what lets work go on. Where it has a processor to itself, it watches for a while before it sleeps: whoever
/// is woken may be put on a processor where it disturbs.
handover::news conductor::wait(const handover::news& before, bool watching) {
  handover& between = current_->between;
  const std::uint64_t room = wanted_room(before.released);
  std::uint64_t blocks = before.blocks_out + 1;
  if (!is_worth_issuing(blocks)) ++blocks;
  const bool asks = copying() || held_back();
  if (watching) {
    const auto until = clock::now() + (asks ? poll_ : watch);
    for (;;) {
      const handover::news now = between.look();
      if (now.blocks_out >= blocks || now.released >= room || now.over || clock::now() >= until) return now;
      pause_processor();
    }
  }
  return between.wait(blocks, room, asks ? poll_ : std::chrono::microseconds(0));
}

/// What must happen before there is something to do again.
obstacle conductor::held_up_by(const handover::news& now) const {
  if (emitted_ >= current_->plan.end()) return obstacle::copies;
  const piece next = current_->plan.piece_at(emitted_, current_->plan.end());
  if (next.blocks_needed <= arrived_) return obstacle::rows;
  if (now.blocks_out > arrived_) return obstacle::copies;  // no image is free, or a neighbour should join
  if (issued_ > arrived_) return obstacle::blocks;
  return copying() ? obstacle::copies : obstacle::rows;
}

/// An error with the stage and the rows it was at. One that comes from work which was issued before is noticed late:
/// the rows are those at which it was.
std::exception_ptr conductor::located(const std::exception_ptr& cause) const noexcept {
  try {
    std::rethrow_exception(cause);
  } catch (const error&) {
    return cause;
  } catch (...) {
  }
  if (doing_.is_block && doing_.block < current_->plan.blocks())
    return stage_error_or_cause(on_, doing_.stage, current_->plan.block(doing_.block), counted::as_read, cause);
  const piece p = named_rows(doing_.rows, on_.rows.rows());
  return stage_error_or_cause(on_, doing_.stage, {p.epoch, p.window, p.first, p.rows}, counted::as_they_come_out,
                              cause);
}

/// Lets blocks into the flow that have what they need: a slot, and room in the ring where they land in it.
bool conductor::issue(std::uint64_t released) {
  const std::uint64_t before = issued_;
  for (; issued_ < current_->plan.blocks() && may_let_in(released); ++issued_) flow_->submit(issued_);
  return issued_ != before;
}

/// Gives the next block its slot, and says whether it has all that it needs. How long it waits is charged to what it
/// lacks.
bool conductor::may_let_in(std::uint64_t released) {
  const geometry& sizes = on_.sizes;
  const bool lacks_slot = has_slot_ == issued_ && sizes.slots && !slots_.has_free();
  const bool lacks_rows = sizes.lands_in_ring && landing_end(issued_) > released + sizes.ring_rows;
  if (opened_ > issued_ && (lacks_slot || (lacks_rows && has_slot_ > issued_))) return false;
  const auto now = clock::now();
  if (opened_ == issued_) {
    ++opened_;
    current_->times.open(issued_, now);
    waits_since_ = now;
  }
  if (lacks_slot) return count_.no_slot.begin(now), false;
  if (has_slot_ == issued_) {
    ++has_slot_;
    if (sizes.slots) slots_.take(), count_.slots.arrive(now);
    current_->times.set(issued_, way::has_slot, now);
    waited(count_.no_slot, "waits for a slot", now);
  }
  if (lacks_rows) return count_.no_rows.begin(now), false;
  waited(count_.no_rows, "waits for free rows", now);
  current_->times.set(issued_, way::let_in, now);
  count_.flow[0].arrive(now);
  return true;
}

/// The block that is to be let in next has waited until now for something.
void conductor::waited(wait_sum& sum, const char* name, clock::time_point now) {
  sum.end(now);
  if (now == waits_since_) return;
  const block_place place = current_->plan.block(issued_);
  note(trace_log::track::entrance, name, waits_since_, now, issued_, place.rows, place.epoch);
  waits_since_ = now;
}

}  // namespace penstock::pipeline
