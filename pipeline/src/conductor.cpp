#include "conductor.hpp"

#include <penstock/gpu/gather.hpp>
#include <penstock/pipeline/error.hpp>

#include <sys/prctl.h>

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr unsigned poll_microseconds = 20;  // while copies are in flight: about a quarter of a block's time on the link
constexpr unsigned long timer_slack_nanoseconds = 1000;

std::vector<gpu::event> make_events(std::size_t count, gpu::device d, const fault_seam& faults) {
  std::vector<gpu::event> events;
  for (std::size_t i = 0; i < count; ++i) events.emplace_back(d, false, faults);
  return events;
}

}  // namespace

conductor::conductor(const ground& on, statistics& count)
    : on_(on),
      count_(count),
      reader_(on),
      host_(on.device().is_host()),
      copy_(on.device(), true, on.parts->faults),
      work_(on.device(), true, on.parts->faults),
      consumer_(on.device(), false, on.parts->faults),
      straight_copied_(on.device(), false, on.parts->faults) {
  has_straight_ = std::any_of(on.sizes.straight.begin(), on.sizes.straight.end(), [](bool s) { return s; });
  has_device_work_ = !on.fields.device_transforms.empty() ||
                     std::any_of(on.sizes.straight.begin(), on.sizes.straight.end(), [](bool s) { return !s; });
  if (has_straight_) writers_.push_back(copy_);
  if (has_device_work_) writers_.push_back(work_);
  if (!host_) {
    copied_ = make_events(on.sizes.slots, on.device(), on.parts->faults);
    image_filled_ = make_events(on.sizes.images, on.device(), on.parts->faults);
    image_used_ = make_events(on.sizes.images, on.device(), on.parts->faults);
  }

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
  issued_ = arrived_ = emitted_ = in_copy_ = held_window_block_ = 0;
  handover::news news = now.between.look();
  while (!news.over) {
    bool progress = issue(news.released);
    progress |= copy_blocks(news.blocks_out);
    progress |= emit(news.released);
    progress |= reap();
    const bool copying = !host_ && slots_.given_back() < in_copy_;
    if (emitted_ == now.plan.end() && !copying) return;
    if (progress) {
      news = now.between.look();
      continue;
    }
    const auto start = clock::now();
    news = now.between.wait(news, copying ? poll_microseconds : 0);
    count_.conductor_idle.wait(start);
  }
}

/// Lets blocks into the flow that have what they need: a slot, and room in the ring where they land in it.
bool conductor::issue(std::uint64_t released) {
  const geometry& sizes = on_.sizes;
  const std::uint64_t before = issued_;
  for (; issued_ < current_->plan.blocks(); ++issued_) {
    if (sizes.slots && !slots_.has_free()) break;
    if (sizes.lands_in_ring) {
      const block_place place = current_->plan.block(issued_);
      if (current_->plan.ring_position(place) + place.rows > released + sizes.ring_rows) break;
    }
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
    if (host_) continue;  // a slot is its own image
    if (on_.sizes.image_bytes) {
      if (!images_.has_free()) break;
      copy_image(arrived_);
    }
    if (!has_straight_) finish_block(arrived_);
  }
  return arrived_ != before;
}

void conductor::copy_image(std::uint64_t block) {
  const auto start = clock::now();
  const std::uint64_t use = images_.take(), image = use % images_.slots();
  image_used_[image].hold(copy_);
  gpu::copy(copy_, images_.at(use), slots_.at(block), images_.slot_bytes());
  image_filled_[image].record(copy_);
  count_.copy.work(start, on_.sizes.image_bytes);
}

/// The block's last copy is issued: its slot is free when that is done.
void conductor::finish_block(std::uint64_t block) {
  copied_[block % copied_.size()].record(copy_);
  in_copy_ = block + 1;
}

bool conductor::reap() {
  const std::uint64_t before = slots_.given_back();
  while (!host_ && slots_.given_back() < in_copy_ && copied_[slots_.given_back() % copied_.size()].done())
    slots_.give_back_to(slots_.given_back() + 1);
  return slots_.given_back() != before;
}

/// Puts out rows as far as blocks have arrived and the ring has room.
bool conductor::emit(std::uint64_t released) {
  const std::uint64_t before = emitted_;
  const std::uint64_t limit = std::min(current_->plan.end(), released + on_.sizes.ring_rows);
  while (emitted_ < limit) {
    const piece p = current_->plan.piece_at(emitted_, limit);
    if (p.blocks_needed > arrived_) break;
    emit_piece(p);
  }
  return emitted_ != before;
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
        for (std::uint64_t block = images_.given_back(); on_.sizes.image_bytes && block < p.blocks_done; ++block)
          image_used_[block % images_.slots()].record(work_);
        images_.give_back_to(p.blocks_done);
        if (has_straight_) finish_block(p.blocks_done - 1);
      }
    }
  }
  emitted_ = end;
  current_->between.publish(has_device_work_ ? work_ : copy_, end);
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
    straight_copied_.record(copy_);
    straight_copied_.hold(work_);
  }
  count_.copy.work(start, bytes);
}

/// Draws the piece's rows from images, converts them, and puts them where they belong.
void conductor::gather(const piece& p) {
  if (!host_ && on_.sizes.image_bytes && held_window_block_ < p.blocks_needed) {
    image_filled_[(p.blocks_needed - 1) % images_.slots()].hold(work_);
    held_window_block_ = p.blocks_needed;
  }
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
          .swapped = from.swapped && on_.fields.host_transforms.empty(),
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
