#include "conductor.hpp"

#include <penstock/gpu/gather.hpp>
#include <penstock/pipeline/error.hpp>

#include <sys/prctl.h>

#include <algorithm>

namespace penstock::pipeline {
namespace {

// How often the device is asked how far copies are: about once in a block's time on a fast link. Each question takes
// the driver's lock, which whoever launches kernels wants too.
constexpr std::size_t link_bytes_per_microsecond = 45'000;
constexpr std::size_t least_poll_microseconds = 5, most_poll_microseconds = 50;
// While so many blocks are on the link, it is worth waiting for a second block: two take as many calls as one.
constexpr std::uint64_t enough_in_copy = 3;
constexpr unsigned long timer_slack_nanoseconds = 1000;

}  // namespace

conductor::conductor(const ground& on, statistics& count)
    : on_(on),
      count_(count),
      reader_(on),
      host_(on.device().is_host()),
      watchful_(on.sizes.watchful),
      poll_(std::clamp(on.sizes.slot_bytes / link_bytes_per_microsecond, least_poll_microseconds,
                       most_poll_microseconds)),
      copy_(on.device(), true, on.parts->faults),
      work_(on.device(), true, on.parts->faults),
      consumer_(on.device(), false, on.parts->faults),
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
  stages.push_back({on.sizes.threads, [this](std::uint64_t block) {
                      in_flow(block, count_.read, [&] { reader_.read(current_->plan, block); });
                      current_->times.set(block, stamps::was_read);
                    }});
  for (std::size_t t = 0; t < on.fields.host_transforms.size(); ++t)
    stages.push_back({on.fields.host_transforms[t].concurrency, [this, t](std::uint64_t block) {
                        in_flow(block, count_.transforms[t], [&] { reader_.apply(current_->plan, block, t); });
                      }});
  flow_ = std::make_unique<flow>(on.sizes.threads, std::move(stages), [this](std::uint64_t block) {
    current_->times.set(block, stamps::came_out);
    current_->between.block_came_out();
  });
  thread_ = std::thread([this] { loop(); });
}

conductor::~conductor() {
  finish({});
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void conductor::in_flow(std::uint64_t block, meter& count, const std::function<void()>& work) {
  if (current_->between.ended()) return;
  const auto start = clock::now();
  try {
    work();
  } catch (...) {
    current_->between.fail(std::current_exception());
    return;
  }
  count.work(start, reader_.bytes_of(current_->plan.block(block)));
}

void conductor::start(std::shared_ptr<epoch_run> next) {
  const std::lock_guard lock(mutex_);
  run_ = std::move(next);
  changed_.notify_all();
}

void conductor::finish(std::span<const gpu::stream_ref> consumers) {
  std::unique_lock lock(mutex_);
  if (run_) run_->between.stop();
  changed_.wait(lock, [&] { return !run_; });
  for (const gpu::stream_ref stream : consumers) {
    gpu::event used(on_.device(), false, on_.parts->faults);
    used.record(stream);
    used.hold(copy_);
    used.hold(work_);
  }
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
      current_->between.fail(std::current_exception());
    }
    flow_->drain();
    try {
      fence();
    } catch (...) {
      current_->between.fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    current_.reset();
    run_.reset();
    changed_.notify_all();
  }
}

/// Waits for copies and kernels in flight: afterwards slots and rings may be used for something else.
void conductor::fence() {
  copy_.synchronize();
  work_.synchronize();
}

void conductor::conduct() {
  epoch_run& now = *current_;
  slots_ = on_.slots;
  images_ = on_.images;
  issued_ = arrived_ = emitted_ = in_copy_ = blocks_put_out_ = 0;
  asked_ = {};
  for (stream_marks* marks : {&copied_, &images_filled_, &images_used_, &straight_filled_}) marks->reset();
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
    news = wait(news, watchful_ && start - progressed < watch);
    count_.conductor_idle.wait(start);
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
  if (watching) {
    const auto until = clock::now() + (copying() ? poll_ : watch);
    for (;;) {
      const handover::news now = between.look();
      if (now.blocks_out >= blocks || now.released >= room || now.over || clock::now() >= until) return now;
      pause_processor();
    }
  }
  return between.wait(blocks, room, copying() ? poll_ : std::chrono::microseconds(0));
}

/// Lets blocks into the flow that have what they need: a slot, and room in the ring where they land in it.
bool conductor::issue(std::uint64_t released) {
  const geometry& sizes = on_.sizes;
  const std::uint64_t before = issued_;
  for (; issued_ < current_->plan.blocks(); ++issued_) {
    if (sizes.slots && !slots_.has_free()) break;
    if (sizes.lands_in_ring && landing_end(issued_) > released + sizes.ring_rows) break;
    if (sizes.slots) slots_.take();
    current_->times.set(issued_, stamps::issued);
    flow_->submit(issued_);
  }
  return issued_ != before;
}

/// Takes blocks that came out of the flow, in order, and issues the copies of their images.
bool conductor::copy_blocks(std::uint64_t came_out) {
  const std::uint64_t before = arrived_;
  for (; arrived_ < came_out; ++arrived_) {
    if (host_ || !on_.sizes.image_bytes) continue;  // on the host a slot is its own image
    if (!images_.has_free()) break;
    copy_image(arrived_);
  }
  if (host_ || arrived_ == before) return arrived_ != before;
  if (on_.sizes.image_bytes) images_filled_.record(copy_, arrived_);
  if (!has_straight_) copies_end(arrived_);
  return true;
}

void conductor::copy_image(std::uint64_t block) {
  const auto start = clock::now();
  const std::uint64_t use = images_.take();
  if (use >= images_.slots()) images_used_.hold(copy_, use + 1 - images_.slots());
  gpu::copy(copy_, images_.at(use), slots_.at(block), images_.slot_bytes());
  count_.copy.work(start, on_.sizes.image_bytes);
}

/// The last copies of the blocks before `end` are issued: their slots are free when these are done.
void conductor::copies_end(std::uint64_t end) {
  copied_.record(copy_, end);
  in_copy_ = end;
}

bool conductor::reap() {
  if (!copying()) return false;
  const auto now = clock::now();
  if (now - asked_ < poll_) return false;
  asked_ = now;
  const std::uint64_t before = slots_.given_back();
  slots_.give_back_to(copied_.done());
  return slots_.given_back() != before;
}

/// Puts out rows as far as blocks have arrived and the ring has room; on a device, with one event for all of them.
bool conductor::emit(std::uint64_t released) {
  const std::uint64_t before = emitted_, blocks_before = blocks_put_out_;
  const std::uint64_t limit = std::min(current_->plan.end(), released + on_.sizes.ring_rows);
  while (emitted_ < limit) {
    const piece p = current_->plan.piece_at(emitted_, limit);
    if (p.blocks_needed > arrived_) break;
    if (on_.sizes.whole_pieces && p.ring_first + p.rows == limit && limit < whole_piece_end()) break;
    emit_piece(p);
    if (host_) current_->between.publish(copy_, emitted_);
  }
  if (host_ || emitted_ == before) return emitted_ != before;
  if (blocks_put_out_ > blocks_before) {
    if (on_.sizes.image_bytes) images_used_.record(work_, blocks_put_out_);
    if (has_straight_) copies_end(blocks_put_out_);
  }
  current_->between.publish(has_device_work_ ? work_ : copy_, emitted_);
  return true;
}

std::uint64_t conductor::landing_end(std::uint64_t block) const {
  const block_place place = current_->plan.block(block);
  return current_->plan.ring_position(place) + place.rows;
}

std::uint64_t conductor::whole_piece_end() const {
  return emitted_ + current_->plan.piece_at(emitted_, current_->plan.end()).rows;
}

/// The released position at which there is room for what is next in line: a block to land, or a piece to put out.
std::uint64_t conductor::wanted_room(std::uint64_t released) const {
  const geometry& sizes = on_.sizes;
  const std::uint64_t room = released + sizes.ring_rows;
  std::uint64_t wanted = handover::nothing;
  if (sizes.lands_in_ring && issued_ < current_->plan.blocks() && landing_end(issued_) > room)
    wanted = landing_end(issued_) - sizes.ring_rows;
  if (emitted_ < current_->plan.end()) {
    const std::uint64_t end = sizes.whole_pieces ? whole_piece_end() : emitted_ + 1;
    if (end > room) wanted = std::min(wanted, end - sizes.ring_rows);
  }
  return wanted;
}

void conductor::emit_piece(const piece& p) {
  const std::uint64_t end = p.ring_first + p.rows;
  if (end > on_.sizes.ring_rows) current_->between.hold_until_free(writers_, end - on_.sizes.ring_rows);
  if (p.padding) {
    pad(p);
  } else {
    if (has_straight_ && !host_) copy_straight(p);
    if (has_device_work_) {
      const auto start = clock::now();
      gather(p);
      transform(p);
      count_.deliver.work(start, 0);
    }
    if (p.blocks_done > p.first_block) {
      if (host_) {
        slots_.give_back_to(p.blocks_done);
      } else {
        images_.give_back_to(p.blocks_done);
        blocks_put_out_ = p.blocks_done;
      }
    }
  }
  emitted_ = end;
}

/// Copies fields that need no conversion from the block's slot to the ring.
void conductor::copy_straight(const piece& p) {
  const auto start = clock::now();
  std::uint64_t bytes = 0;
  for (std::size_t c = 0; c < on_.fields.conversions.size(); ++c) {
    if (!on_.sizes.straight[c]) continue;
    const conversion& how = on_.fields.conversions[c];
    const std::size_t row_bytes = on_.fields.host[how.from].row_bytes();
    const std::byte* from =
        slots_.at(p.first_block) + on_.sizes.host_offsets[how.from] + (p.first - p.window_first) * row_bytes;
    gpu::copy(copy_, on_.rings[how.to].at(p.ring_first), from, p.rows * row_bytes);
    bytes += p.rows * row_bytes;
  }
  if (has_device_work_) {
    straight_filled_.record(copy_, p.ring_first + p.rows);
    straight_filled_.hold(work_, p.ring_first + p.rows);
  }
  count_.copy.work(start, bytes);
}

/// Draws the piece's rows from images, converts them, and puts them where they belong.
void conductor::gather(const piece& p) {
  if (!host_ && on_.sizes.image_bytes) images_filled_.hold(work_, p.blocks_needed);
  const gpu::permutation draw = on_.rows.draw(p.epoch, p.window);
  const auto work = [&] {
    for (std::size_t c = 0; c < on_.fields.conversions.size(); ++c) {
      if (on_.sizes.straight[c]) continue;
      const conversion& how = on_.fields.conversions[c];
      const host_field& from = on_.fields.host[how.from];
      const device_field& to = on_.fields.device[how.to];
      const gpu::gather_source source{
          .base = images_.base(),
          .image_bytes = images_.slot_bytes(),
          .offset = on_.sizes.host_offsets[how.from],
          .image_rows = on_.sizes.block_rows,
          .first_image = p.first_block % images_.slots(),
          .images = images_.slots(),
          .element = from.element,
          .swapped = from.swapped && !on_.fields.swapped_by_reader,
      };
      const gpu::gather_target target{on_.rings[how.to].base(), to.in_ring ? on_.sizes.ring_rows : p.rows, to.element};
      gpu::gather(work_, source, target, from.elements, draw, p.first - p.window_first, to.in_ring ? p.ring_first : 0,
                  p.rows, how.arithmetic);
    }
  };
  if (host_)
    flow_->inside(work);
  else
    work();
}

void conductor::transform(const piece& p) {
  for (const wired_transform& step : on_.fields.device_transforms) {
    const auto fields_of = [&](const std::vector<std::size_t>& fields) {
      std::vector<block_field> views;
      for (const std::size_t field : fields) {
        const device_field& what = on_.fields.device[field];
        views.push_back({what.name, what.element, what.row_bytes(),
                         what.in_ring ? on_.rings[field].at(p.ring_first) : on_.rings[field].base()});
      }
      return views;
    };
    const auto inputs = fields_of(step.inputs), outputs = fields_of(step.outputs);
    const auto* ids = reinterpret_cast<const std::uint64_t*>(on_.rings[on_.fields.device_row_ids].base());
    try {
      step.function(penstock::pipeline::block(on_.rows.seed(), p.epoch, p.rows, ids, inputs, outputs, work_));
    } catch (...) {
      std::vector<extent> rows;
      for (std::uint64_t i = 0; i < p.rows; ++i) {
        const std::uint64_t row = on_.rows.row(p.epoch, p.first + i);
        if (!rows.empty() && rows.back().first + rows.back().count == row)
          ++rows.back().count;
        else
          rows.push_back({row, 1});
      }
      std::rethrow_exception(
          stage_error(step.name, {p.epoch, p.window, p.first, p.rows}, rows, std::current_exception()));
    }
  }
}

/// Zeros after the last row of an epoch, where batches are padded.
void conductor::pad(const piece& p) {
  if (on_.parts->batch.last != last_batch::pad) return;
  for (const std::size_t field : on_.fields.batch)
    gpu::fill(has_device_work_ ? work_ : copy_, on_.rings[field].at(p.ring_first), 0,
              p.rows * on_.fields.device[field].row_bytes());
}

}  // namespace penstock::pipeline
