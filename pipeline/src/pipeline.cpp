#include "pipeline_impl.hpp"

#include "block_reader.hpp"
#include "make_report.hpp"
#include "run_state.hpp"

#include <penstock/gpu/error.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/output_file.hpp>

#include <fmt/format.h>

#include <exception>
#include <stdexcept>

namespace penstock::pipeline {

pipeline::pipeline(std::unique_ptr<impl> inner) noexcept : impl_(std::move(inner)) {}
pipeline::pipeline(pipeline&&) noexcept = default;
pipeline& pipeline::operator=(pipeline&&) noexcept = default;
pipeline::~pipeline() = default;

void pipeline::impl::end_run() {
  if (running) {
    users = lease->end();  // without memory for these, the run goes on, and may be ended later
    running = false;
    on_stop.reset();
    hands->stop();
    if (count.paused.are_on()) count.resume(clock::now());
    at_pause.reset();
    count.seconds += lease->seconds();  // now that its stages' clocks stand still
    count.failures += lease->failures();
  }
  if (users.empty()) return;
  hands->wait_for_users(users);
  users.clear();
}

pipeline_report pipeline::impl::report(const machine_limits& limits) {
  return make_report(*on, count, running ? lease->seconds() : 0, limits);
}

void pipeline::impl::end_run_if_possible() noexcept {
  try {
    end_run();
  } catch (const std::exception&) {
  }
}

std::shared_ptr<batch_lease> pipeline::impl::begin_run(std::uint64_t first, std::uint64_t epochs,
                                                       const consume_options& options) {
  // What cannot begin leaves the run in hand alone.
  const gpu::stream_ref stream = options.stream.value_or(hands->consumer_stream());
  if (stream.device() != on->device())
    throw std::invalid_argument(
        fmt::format("the consumer's stream is on {}, the pipeline on {}", stream.device().name(), on->device().name()));
  const schedule what(on->rows, sizes_of_a_run(), first, epochs, options.first_batch);
  if (lease && lease->held() > 0)
    throw error(
        fmt::format("{} batches of the run before are still held; release them before the next run", lease->held()),
        {"consumer", 0, 0, 0, {}});
  end_run();
  if (lease) lease->let_wait_for_late(*hands);
  auto next = std::make_shared<epoch_run>(*on, what, help);
  lease = std::make_shared<batch_lease>(on, next, count, trace.get(), stream, options.while_waiting);
  running = true;
  if (options.stop.stop_possible())
    on_stop = std::make_unique<std::stop_callback<std::function<void()>>>(options.stop,
                                                                          [keep = std::weak_ptr<epoch_run>(next)] {
                                                                            if (const auto r = keep.lock())
                                                                              r->between.stop();
                                                                          });
  hands->start(std::move(next));
  return lease;
}

epoch_range pipeline::epochs(std::uint64_t first, std::uint64_t count, consume_options options) {
  auto range = std::make_unique<epoch_range::impl>();
  range->lease = impl_->begin_run(first, count, options);
  range->owner = impl_.get();
  return epoch_range(std::move(range));
}

void pipeline::run(std::uint64_t first, std::uint64_t count, const std::function<void(batch&)>& consumer,
                   consume_options options) {
  for (batch& next : epochs(first, count, std::move(options))) consumer(next);
}

std::uint64_t pipeline::rows() const noexcept { return impl_->on->rows.rows(); }

std::uint64_t pipeline::batches_per_epoch() const noexcept {
  const batch_options& b = impl_->on->parts->batch;
  return schedule::batches_per_epoch(impl_->on->rows, b.rows, b.last);
}

gpu::device pipeline::device() const noexcept { return impl_->on->device(); }
const pipeline_plan& pipeline::plan() const noexcept { return impl_->on->plan; }
const order& pipeline::row_order() const noexcept { return impl_->on->rows; }

std::optional<row_place> pipeline::place_of(std::string_view field, std::uint64_t row) const {
  const auto& fields = impl_->on->parts->from.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name != field) continue;
    const io::row_reader& reader = impl_->on->readers[i];
    const io::row_reader::segment& part = reader.segment_of(row);
    return row_place{part.where.file.string(), part.where.dataset, row - part.first_row,
                     static_cast<std::uint64_t>(&part - reader.segments().data())};
  }
  return std::nullopt;
}

error pipeline::failure(run_position at, std::exception_ptr cause, const failed_work& work) const {
  const ground& on = *impl_->on;
  const schedule epoch(on.rows, impl_->sizes_of_a_run(), at.epoch, 1, at.batch);
  if (epoch.batches() == 0) return located_error(on, work, {at.epoch, 0, 0, 0}, {}, std::move(cause));
  const schedule::batch_place place = epoch.batch(0);
  return located_error(on, work, {place.epoch, 0, place.first, place.valid_rows},
                       rows_drawn(on.rows, place.epoch, place.first, place.valid_rows), std::move(cause));
}

std::string pipeline::state(run_position next) const { return write_state(*impl_->on, next); }

std::string pipeline::state_after(const batch& last) const {
  const bool ends = last.index() + 1 >= batches_per_epoch();
  return state(ends ? run_position{last.epoch() + 1, 0} : run_position{last.epoch(), last.index() + 1});
}

run_position pipeline::resume_at(std::string_view state) const { return read_state(*impl_->on, state); }

pipeline_report pipeline::report(const machine_limits& limits) const {
  if (!impl_->count.paused.are_on()) return impl_->report(limits);
  pipeline_report before = *impl_->at_pause;
  before.limits = limits;
  before.bottleneck = bottleneck_of(before);
  return before;
}

void pipeline::pause() {
  if (!impl_->running || impl_->lease->has_ended() || impl_->count.paused.are_on()) return;
  impl_->at_pause = std::make_unique<pipeline_report>(impl_->report({}));
  impl_->count.pause(clock::now());
}

std::uint64_t pipeline::write_trace(const std::filesystem::path& file) const {
  if (!impl_->trace)
    throw std::invalid_argument("there is no trace to write: describe the pipeline with traced(), so that it is kept");
  try {
    io::output_file out(file);
    impl_->trace->write([&](std::string_view piece) { out.append(piece); });
    out.commit();
  } catch (const io::error& e) {
    // Without the cause: of an error with an io::error in it, callers would think that the data cannot be read.
    throw error(fmt::format("the trace could not be written: {}", e.what()), {.stage = "trace"});
  }
  return impl_->trace->dropped();
}

epoch_range::impl::~impl() {
  // A range that is left early ends its run now. Where that was replaced, or went with the pipeline, there is none.
  if (owner && !lease->is_over()) owner->end_run_if_possible();
}

epoch_range::epoch_range(std::unique_ptr<impl> inner) noexcept : impl_(std::move(inner)) {}
epoch_range::epoch_range(epoch_range&&) noexcept = default;
epoch_range& epoch_range::operator=(epoch_range&&) noexcept = default;
epoch_range::~epoch_range() { current_.release(); }

batch epoch_range::next() { return impl_->lease->next(); }

epoch_range::iterator epoch_range::begin() {
  iterator it;
  it.range_ = this;
  it.current_ = &current_;
  return ++it;
}

epoch_range::iterator& epoch_range::iterator::operator++() {
  range_->current_.release();
  range_->current_ = range_->next();
  if (!range_->current_) range_ = nullptr;
  return *this;
}

}  // namespace penstock::pipeline
