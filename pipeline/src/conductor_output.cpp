// The conductor's way out: from blocks that came out of the flow to rows in the rings.

#include "conductor.hpp"

#include "side_by_side.hpp"

#include <penstock/gpu/range.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::pipeline {
namespace {

// Where the consumer's steps take longer than that, what a gather costs them does not show.
constexpr std::chrono::milliseconds most_held_back{1};

}  // namespace

/// Takes blocks that came out of the flow, in order, and issues the copies of their images.
bool conductor::copy_blocks(std::uint64_t came_out) {
  const std::uint64_t before = arrived_;
  auto now = arrived_ < came_out ? clock::now() : clock::time_point();
  // As many as come and go together.
  const std::uint64_t together = on_.sizes.piece_rows / on_.sizes.block_rows;
  while (arrived_ < came_out) {
    std::uint64_t blocks = 1;
    if (!host_ && on_.sizes.image_bytes) {  // on the host a slot is its own image
      if (!images_.has_free()) break;
      blocks = side_by_side(together, arrived_, came_out, slots_, images_);
      now = copy_images(arrived_, blocks, now);
    }
    for (; blocks > 0; --blocks, ++arrived_) current_->times.set(arrived_, current_->times.of().arrived(), now);
  }
  if (host_ || arrived_ == before) return arrived_ != before;
  if (on_.sizes.image_bytes) images_filled_.record(copy_, arrived_);
  if (!has_straight_) copies_end(arrived_);
  return true;
}

/// Issues the copy of `blocks` images that lie side by side. An image's use has the number of its block.
clock::time_point conductor::copy_images(std::uint64_t first, std::uint64_t blocks, clock::time_point start) {
  doing_ = {.stage = "copy", .is_block = true, .block = first, .rows = {}};
  const gpu::range profiled("copy");
  std::uint64_t rows = 0;
  for (std::uint64_t block = first; block < first + blocks; ++block) {
    images_.take();
    rows += current_->plan.block(block).rows;
  }
  count_.images_in_use.see(images_.in_use());
  const std::uint64_t uses = images_.taken();
  if (uses > images_.slots()) images_used_.hold(copy_, uses - images_.slots());
  gpu::copy(copy_, images_.at(first), slots_.at(first), blocks * images_.slot_bytes());
  const auto end = clock::now();
  count_.copy.add(count_.paused.counted(start, end), blocks * on_.sizes.image_bytes, has_straight_ ? 0 : blocks);
  note(trace_log::track::device, "copy", start, end, first, rows, current_->plan.block(first).epoch);
  return end;
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
  doing_ = {.stage = "copy", .is_block = true, .block = slots_.given_back(), .rows = {}};
  return give_back_slots(copied_.done(), now);
}

/// Slots of the blocks before `end` are free.
bool conductor::give_back_slots(std::uint64_t end, clock::time_point now) {
  const std::uint64_t before = slots_.given_back();
  if (on_.parts->batch.poisoned && slots_.slots())
    for (std::uint64_t use = before; use < end; ++use) std::memset(slots_.at(use), 0xff, slots_.slot_bytes());
  slots_.give_back_to(end);
  if (slots_.given_back() == before) return false;
  if (slots_.slots()) count_.slots.leave(now, slots_.given_back() - before);
  return true;
}

/// The consumer's kernels still work on the rows that lie where the piece goes, and there are enough others. A gather
/// that waited for them on the device would begin when they end, which is when the consumer's next kernels begin, and
/// these would find multiprocessors taken: a product of matrices that fills the device once then takes twice as long.
/// So it is launched when they are known to have ended, amid whatever comes after them; or at last, so that nobody who
/// holds the device up waits for himself, behind them.
bool conductor::is_too_early(const piece& p) {
  const std::uint64_t ring = on_.sizes.ring_rows, end = p.ring_first + p.rows;
  const bool enough_ahead = ring >= 2 * p.rows && ring >= p.rows + 2 * on_.parts->batch.rows;
  if (host_ || !has_device_work_ || end <= ring || !enough_ahead) return false;
  const auto now = clock::now();
  if (held_back() && now - asked_place_ < poll_) return true;
  asked_place_ = now;
  if (current_->between.is_free(end - ring)) return held_back_since_ = {}, false;
  if (!held_back()) held_back_since_ = now;
  if (now - held_back_since_ < most_held_back) return true;
  return held_back_since_ = {}, false;
}

/// Puts out rows as far as blocks have arrived and the ring has room; on a device, with one event for all of them.
bool conductor::emit(std::uint64_t released) {
  const std::uint64_t before = emitted_, blocks_before = blocks_put_out_;
  const std::uint64_t limit = std::min(current_->plan.end(), released + on_.sizes.ring_rows);
  while (emitted_ < limit) {
    const piece p = current_->plan.piece_at(emitted_, limit);
    if (p.blocks_needed > arrived_) break;
    if (on_.sizes.whole_pieces && p.ring_first + p.rows == limit && limit < whole_piece_end()) break;
    if (is_too_early(p)) break;
    emit_piece(p);
    if (host_) current_->between.publish(copy_, emitted_);
  }
  if (emitted_ != before) count_.ring_rows_in_use.see(emitted_ - released);
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
  doing_ = {.stage = has_straight_ && !host_ ? "copy" : "gather", .is_block = false, .block = 0, .rows = p};
  const std::uint64_t end = p.ring_first + p.rows;
  if (end > on_.sizes.ring_rows) current_->between.hold_until_free(writers_, end - on_.sizes.ring_rows);
  if (p.padding) {
    pad(p);
    emitted_ = end;
    return;
  }
  stamps& times = current_->times;
  auto now = clock::now();
  times.take_piece(p.blocks_needed, end, now);
  if (has_straight_ && !host_) now = copy_straight(p, now);
  if (has_device_work_) now = gather(p, now);
  times.set_piece(times.of().gathered(), now);
  now = transform(p, now);
  if (p.blocks_done > p.first_block) use_up(p, now);
  emitted_ = end;
}

/// The piece was the last of its block, or of its window's.
void conductor::use_up(const piece& p, clock::time_point now) {
  count_.hands.leave(now, p.blocks_done - p.first_block);
  if (host_) {
    give_back_slots(p.blocks_done, now);
  } else {
    if (on_.parts->batch.poisoned && on_.sizes.image_bytes)
      for (std::uint64_t use = images_.given_back(); use < p.blocks_done; ++use)
        gpu::fill(work_, images_.at(use), 0xff, images_.slot_bytes());
    images_.give_back_to(p.blocks_done);
    blocks_put_out_ = p.blocks_done;
  }
}

/// Copies fields that need no conversion from the block's slot to the ring.
clock::time_point conductor::copy_straight(const piece& p, clock::time_point start) {
  const gpu::range profiled("copy");
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
  const auto end = clock::now();
  count_.copy.add(count_.paused.counted(start, end), bytes, p.blocks_done > p.first_block ? 1 : 0);
  note(trace_log::track::device, "copy", start, end, p.first_block, p.rows, p.epoch);
  return end;
}

/// Draws the piece's rows from images, converts them, and puts them where they belong.
clock::time_point conductor::gather(const piece& p, clock::time_point start) {
  doing_.stage = "gather";
  const gpu::range profiled("gather");
  if (!host_ && on_.sizes.image_bytes) images_filled_.hold(work_, p.blocks_needed);
  const gpu::permutation draw = on_.rows.draw(p.epoch, p.window);
  std::uint64_t bytes = 0;
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
      gather_rows_(source, target, from.elements, draw, p.first - p.window_first, to.in_ring ? p.ring_first : 0, p.rows,
                   how.arithmetic);
      bytes += p.rows * to.row_bytes();
    }
  };
  if (host_)
    flow_->inside(work);
  else
    work();
  const auto end = clock::now();
  count_.gather.add(count_.paused.counted(start, end), bytes,
                    p.blocks_done > p.first_block ? p.blocks_done - p.first_block : 0);
  note(trace_log::track::device, "gather", start, end, p.first_block, p.rows, p.epoch);
  return end;
}

/// Lets device transforms work on the piece.
clock::time_point conductor::transform(const piece& p, clock::time_point start) {
  for (std::size_t t = 0; t < on_.fields.device_transforms.size(); ++t) {
    const wired_transform& step = on_.fields.device_transforms[t];
    const gpu::range profiled(step.name.c_str());
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
      std::rethrow_exception(stage_error(on_, step.name, {p.epoch, p.window, p.first, p.rows},
                                         rows_drawn(on_.rows, p.epoch, p.first, p.rows), std::current_exception()));
    }
    const auto end = clock::now();
    std::uint64_t bytes = 0;
    for (const std::size_t field : step.outputs) bytes += p.rows * on_.fields.device[field].row_bytes();
    count_.device_transforms[t].add(count_.paused.counted(start, end), bytes,
                                    p.blocks_done > p.first_block ? p.blocks_done - p.first_block : 0);
    current_->times.set_piece(current_->times.of().transformed(t), end);
    note(trace_log::track::device, step.name.c_str(), start, end, p.first_block, p.rows, p.epoch);
    start = end;
  }
  return start;
}

/// Zeros after the last row of an epoch, where batches are padded.
void conductor::pad(const piece& p) {
  if (on_.parts->batch.last != last_batch::pad) return;
  for (const std::size_t field : on_.fields.batch)
    gpu::fill(has_device_work_ ? work_ : copy_, on_.rings[field].at(p.ring_first), 0,
              p.rows * on_.fields.device[field].row_bytes());
}

}  // namespace penstock::pipeline
