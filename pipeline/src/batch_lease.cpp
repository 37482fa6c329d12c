#include "batch_lease.hpp"

#include "block_reader.hpp"

#include <penstock/gpu/error.hpp>
#include <penstock/gpu/range.hpp>
#include <penstock/pipeline/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {

batch_lease::batch_lease(std::shared_ptr<const ground> on, std::shared_ptr<epoch_run> in, statistics& count,
                         trace_log* trace, gpu::stream_ref stream, std::function<void()> while_waiting)
    : on_(std::move(on)),
      run_(std::move(in)),
      count_(count),
      trace_(trace),
      stream_(stream),
      while_waiting_(told_apart(std::move(while_waiting))),
      began_(clock::now()),
      lent_(on_->parts->batch.held + 1) {}

/// What a user's function throws is no failure of the run, whatever it is: user_at_work_ stays set then.
std::function<void()> batch_lease::told_apart(std::function<void()> of_user) {
  if (!of_user) return {};
  return [this, of_user = std::move(of_user)] {
    user_at_work_ = true;
    of_user();
    user_at_work_ = false;
  };
}

batch batch_lease::next() {
  const std::size_t batch_rows = on_->parts->batch.rows;
  const std::uint64_t ticket = lent_.lent();
  if (ticket == run_->plan.batches()) {
    note_end();
    return {};
  }
  check_that_it_may_lend();
  if (count_.paused.are_on()) count_.resume(clock::now());  // the pipeline is there: its run goes on
  const schedule::batch_place place = run_->plan.batch(ticket);
  const std::uint64_t first_row = ticket * batch_rows;
  try {
    if (!run_->between.has_rows(first_row + place.rows)) wait_for_rows(place, first_row);
  } catch (...) {
    if (run_->between.ended()) note_end();  // what a user's function threw ends nothing
    throw;
  }
  if (ticket == 0) count_.first_batch_seconds = seconds_since(began_);

  batch next;
  next.epoch_ = place.epoch;
  next.index_ = place.index;
  next.rows_ = place.rows;
  next.valid_rows_ = place.valid_rows;
  next.stream_ = stream_;
  next.ticket_ = lent_.lend();
  if (on_->mask) next.mask_ = on_->mask + (batch_rows - place.valid_rows);
  next.lease_ = shared_from_this();
  ++count_.batches;
  count_.rows += place.valid_rows;
  if (place.last_of_epoch) ++count_.epochs;
  return next;
}

/// Where the run is over, its rows may be another run's by now. Rows come back in order, so that a batch which is held
/// keeps all that were lent after it: these count too.
void batch_lease::check_that_it_may_lend() const {
  if (over_) refuse_what_is_gone();
  if (!lent_.has_room()) refuse_too_many();
}

void batch_lease::refuse_what_is_gone() const {
  const schedule::batch_place place = run_->plan.batch(lent_.lent());
  throw error(
      fmt::format("batch {} of epoch {} cannot be had any more: its run ended, as another began or the pipeline "
                  "was destroyed",
                  place.index, place.epoch),
      {"consumer", place.epoch, 0, 0, {}});
}

void batch_lease::refuse_too_many() const {
  const std::uint64_t ticket = lent_.in_order();
  const schedule::batch_place oldest = run_->plan.batch(ticket);
  throw error(fmt::format("batch {} of epoch {} is still held, {} batches later; the pipeline was planned for {} held "
                          "beside the next one: release it, or raise batch_options::held",
                          oldest.index, oldest.epoch, lent_.lent() - ticket, on_->parts->batch.held),
              {"consumer", oldest.epoch, 0, 0, {}});
}

void batch_lease::wait_for_rows(const schedule::batch_place& place, std::uint64_t first_row) {
  const auto start = clock::now();
  const std::uint64_t position = first_row + std::max<std::uint64_t>(place.valid_rows, 1) - 1;
  bool late = false;
  user_at_work_ = false;
  try {
    const gpu::range profiled("wait for rows");
    late = run_->between.wait_for_rows(stream_, first_row + place.rows, count_.stall, while_waiting_);
  } catch (const gpu::error&) {
    charge(start, position);
    if (user_at_work_) throw;
    // The stream may not wait for rows that are counted as there: the run is over.
    const std::exception_ptr failure = located(place, std::current_exception());
    run_->between.fail(failure);
    std::rethrow_exception(failure);
  } catch (...) {
    charge(start, position);
    throw;
  }
  if (late) return charge(start, position);
  const double seconds = seconds_since(start);
  count_.waits.back() += seconds;
  count_.wait_seconds += seconds;
}

void batch_lease::charge(clock::time_point start, std::uint64_t position) {
  const auto end = clock::now();
  const piece needed = run_->plan.piece_at(position, run_->plan.end());
  const std::uint64_t last = needed.blocks_needed ? needed.blocks_needed - 1 : 0;
  run_->times.charge(start, end, position, last, count_.waits, run_->between.read_until());
  count_.wait_seconds += to_seconds(end - start);
  if (trace_) trace_->add(trace_log::track::consumer, {"wait for rows", start, end, last, needed.rows, needed.epoch});
}

std::exception_ptr batch_lease::located(const schedule::batch_place& place, std::exception_ptr cause) const noexcept {
  return stage_error_or_cause(*on_, "consumer", {place.epoch, 0, place.first, place.valid_rows},
                              counted::as_they_come_out, std::move(cause));
}

std::uint64_t batch_lease::failures() const {
  return (run_->between.failure() ? 1 : 0) + run_->between.later_failures();
}

std::vector<gpu::stream_ref> batch_lease::end() {
  const std::lock_guard lock(mutex_);
  if (over_) return {};
  std::vector<gpu::stream_ref> streams{stream_};
  for (const user& other : using_) streams.push_back(other.stream);
  late_.reserve(late_.size() + used_.size());
  over_ = true;  // where there is no memory for the lists, the run goes on
  for (const user_mark& mark : used_) late_.push_back(mark.event);
  return streams;
}

bool batch_lease::is_over() const { return over_; }

void batch_lease::outlive() {
  const std::lock_guard lock(mutex_);
  over_ = last_ = true;  // also where end() found no memory
  late_.clear();
}

std::size_t batch_lease::held() const { return lent_.out(); }

double batch_lease::seconds() const { return to_seconds(ended_.value_or(clock::now()) - began_); }

void batch_lease::note_end() {
  if (ended_ || is_over()) return;  // a pause would be another run's, if there still is a pipeline
  ended_ = clock::now();
  if (count_.paused.are_on()) count_.resume(*ended_);  // a pause is one of the run, and ends with it
}

void batch_lease::used_on(std::uint64_t ticket, gpu::stream_ref other) {
  // On the host nothing would wait for a CUDA stream, and another device's cannot be marked when the rows come back.
  if (other.device() != stream_.device())
    throw std::invalid_argument(
        fmt::format("the consumer's stream is on {}, the batch on {}", other.device().name(), stream_.device().name()));
  const std::lock_guard lock(mutex_);
  if (over_) {
    const schedule::batch_place place = run_->plan.batch(ticket);
    throw std::invalid_argument(fmt::format("batch {} of epoch {} cannot be used on another stream: its run has ended",
                                            place.index, place.epoch));
  }
  try {
    gpu::event filled(on_->device(), gpu::event_use::order, on_->parts->faults);
    filled.record(stream_);
    filled.hold(other);
  } catch (const gpu::error&) {
    std::rethrow_exception(located(run_->plan.batch(ticket), std::current_exception()));
  }
  using_.push_back({ticket, other});
  ++users_;
}

/// What was issued before is marked at once in every stream but stream_, whether or not the rows return by now: whoever
/// gives the batch back may end that stream.
void batch_lease::release(std::uint64_t ticket) noexcept {
  try {
    if (users_ > 0 || over_) mark_users(ticket);
  } catch (...) {
    fail_at(ticket);
  }
  lent_.bring_back(ticket, [this](std::uint64_t one) {
    try {
      passed(one);
    } catch (...) {
      fail_at(one);
    }
  });
}

void batch_lease::fail_at(std::uint64_t ticket) noexcept {
  run_->between.fail(located(run_->plan.batch(ticket), std::current_exception()));
}

/// Where the run is over, its rows may soon be another's: that one waits for what was issued until now, to stream_ too.
void batch_lease::mark_users(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (last_) return;
  if (over_) late_.push_back(run_->between.record_mark(stream_));
  for (auto one = using_.begin(); one != using_.end();) {
    if (one->ticket != ticket) {
      ++one;
      continue;
    }
    gpu::event* const mark = run_->between.record_mark(one->stream);
    if (over_)
      late_.push_back(mark);
    else
      used_.push_back({ticket, mark});
    one = using_.erase(one);
  }
  users_ = using_.size() + used_.size();
}

void batch_lease::let_wait_for_late(ring_filler& hands) {
  const std::lock_guard lock(mutex_);
  for (; !late_.empty(); late_.pop_back()) hands.wait_for(*late_.back());
}

/// The batch, and all before, are back. Rows return in steps: one event for all batches of a step. Those that are
/// poisoned return at once, for whoever still looks at them is to see it.
void batch_lease::passed(std::uint64_t ticket) {
  const std::uint64_t batches = ticket + 1;
  const bool ends_step = on_->parts->batch.poisoned ||
                         batches * on_->parts->batch.rows % on_->sizes.quantum_rows == 0 ||
                         batches == run_->plan.batches();
  if (ends_step || users_ > 0) give_back(batches, ends_step);
}

/// Rows of the run's first `batches` return, where that ends a step, or another stream used the last of them.
void batch_lease::give_back(std::uint64_t batches, bool ends_step) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = batches * on_->parts->batch.rows;
  if (over_ || end <= returned_) return;  // another thread may have been quicker with later ones
  const auto of_these = [&](const user_mark& mark) { return mark.ticket < batches; };
  std::vector<gpu::event*> marks;
  for (const user_mark& mark : used_)
    if (of_these(mark)) marks.push_back(mark.event);
  if (!ends_step && marks.empty()) return;
  if (on_->parts->batch.poisoned) poison(marks, end);
  run_->between.release(marks, stream_, end);
  std::erase_if(used_, of_these);
  users_ = using_.size() + used_.size();
  returned_ = end;
}

/// Overwrites the rows [returned_, end) once all streams that used them are past them.
void batch_lease::poison(std::span<gpu::event* const> users, std::uint64_t end) {
  for (const gpu::event* used : users) used->hold(stream_);
  for (const std::size_t field : on_->fields.batch) {
    const gpu::row_ring& ring = on_->rings[field];
    for (std::uint64_t row = returned_; row < end;) {
      const std::uint64_t count = ring.contiguous(row, end - row);
      gpu::fill(stream_, ring.at(row), 0xff, count * ring.row_bytes());
      row += count;
    }
  }
}

field_view batch_lease::view_of(std::uint64_t ticket, std::size_t field) const {
  const device_field& what = on_->fields.device[field];
  return {what.name, on_->rings[field].at(ticket * on_->parts->batch.rows), what.element, what.row_bytes(),
          &what.row_shape};
}

field_view batch_lease::view(std::uint64_t ticket, std::string_view name) const {
  for (const std::size_t field : on_->fields.batch)
    if (on_->fields.device[field].name == name) return view_of(ticket, field);
  std::string names;
  for (const std::size_t field : on_->fields.batch)
    names += (names.empty() ? "" : ", ") + on_->fields.device[field].name;
  throw std::invalid_argument(fmt::format("the batch has no field '{}'; it has {}", name, names));
}

std::vector<field_view> batch_lease::views(std::uint64_t ticket) const {
  std::vector<field_view> all;
  for (const std::size_t field : on_->fields.batch) all.push_back(view_of(ticket, field));
  return all;
}

std::vector<std::uint64_t> batch_lease::row_ids(std::uint64_t ticket) const {
  const schedule::batch_place place = run_->plan.batch(ticket);
  std::vector<std::uint64_t> ids(place.valid_rows);
  for (std::uint64_t i = 0; i < place.valid_rows; ++i) ids[i] = on_->rows.row(place.epoch, place.first + i);
  return ids;
}

std::vector<row_identity> batch_lease::row_identities(std::uint64_t ticket, std::string_view field) const {
  const auto& fields = on_->parts->from.fields();
  const auto named = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == field; });
  if (named == fields.end())
    throw std::invalid_argument(
        fmt::format("rows are identified by field '{}', which the source does not have", field));
  const io::row_reader& reader = on_->readers[static_cast<std::size_t>(named - fields.begin())];
  std::vector<row_identity> identities;
  for (const std::uint64_t row : row_ids(ticket)) {
    const io::row_reader::segment& part = reader.segment_of(row);
    identities.push_back({static_cast<std::uint64_t>(&part - reader.segments().data()), row - part.first_row});
  }
  return identities;
}

}  // namespace penstock::pipeline
