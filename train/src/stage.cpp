#include <penstock/train/stage.hpp>

#include "stage_impl.hpp"

#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace penstock::train {
namespace {

/// What an update that ended midway has left is none of a model.
void refuse_torn(const stage::impl& s) {
  if (s.torn)
    throw error(
        "an update of the parameters failed midway, and some of them are those of the next step; resume from the "
        "last checkpoint");
}

void check_rows(const stage_options& options, const batch_rows& batch) {
  if (batch.rows > options.rows || batch.valid_rows > batch.rows)
    throw std::invalid_argument(fmt::format("{} rows, {} of them valid, for a stage that is planned for {}", batch.rows,
                                            batch.valid_rows, options.rows));
  if (batch.x == nullptr || batch.targets == nullptr)
    throw std::invalid_argument("a stage needs rows of x and targets");
}

void check(const stage_options& options, const batch_rows& batch) {
  check_rows(options, batch);
  if ((batch.x2 != nullptr) != (sides(options.model) == 2))
    throw std::invalid_argument(batch.x2 != nullptr ? "the model has one input, and there are rows of a second one"
                                                    : "the model has two inputs, and there is no second one");
}

std::size_t bytes_of(const std::vector<state_item>& items) {
  std::size_t all = 0;
  for (const state_item& item : items) {
    std::size_t bytes = size_of(item.element);
    for (const std::uint64_t extent : item.shape) bytes *= extent;
    all += bytes;
  }
  return all;
}

std::unique_ptr<stage::impl> make_impl(gpu::stream_ref stream, const stage_options& options,
                                       std::shared_ptr<gpu::memory> memory) {
  check(options);
  if (options.compute == type::float64) return make_typed_stage<double>(stream, options, std::move(memory));
  if (options.precision == precision::bf16) return make_typed_stage<bfloat16>(stream, options, std::move(memory));
  if (options.precision == precision::fp16) return make_typed_stage<float16>(stream, options, std::move(memory));
  return make_typed_stage<float>(stream, options, std::move(memory));
}

}  // namespace

stage::stage(gpu::stream_ref stream, const stage_options& options, std::shared_ptr<gpu::memory> memory)
    : impl_(make_impl(stream, options, std::move(memory))) {}
stage::stage(stage&&) noexcept = default;
stage& stage::operator=(stage&&) noexcept = default;
stage::~stage() = default;

void stage::accumulate(const batch_rows& batch) {
  if (batch.rows == 0) return;
  refuse_torn(*impl_);
  check(impl_->options, batch);
  impl_->pass(impl_->numbered(batch), true);
  impl_->rows_in_step += batch.valid_rows;
  ++impl_->batches_in_step;
}

void stage::step(const batch_rows& batch, double learning_rate) {
  refuse_torn(*impl_);
  if (batch.rows == 0) return update(learning_rate);
  check(impl_->options, batch);
  const batch_rows numbered = impl_->numbered(batch);
  impl_->rows_in_step = impl_->batches_in_step = 0;
  impl_->step(numbered, learning_rate);
}

void stage::evaluate(const batch_rows& batch) {
  if (batch.rows == 0) return;
  refuse_torn(*impl_);
  check(impl_->options, batch);
  batch_rows numbered = batch;
  if (numbered.first_row == batch_rows::counted_on) numbered.first_row = 0;
  impl_->pass(numbered, false);
}

confusion_matrix stage::confusion() {
  confusion_matrix result;
  if (impl_->confusion.empty()) return result;
  result.classes = classes_of(impl_->options.loss, impl_->options.model.outputs);
  result.counts.resize(result.classes * result.classes);
  impl_->read(reinterpret_cast<const std::byte*>(impl_->confusion.data()),
              reinterpret_cast<std::byte*>(result.counts.data()), result.counts.size() * sizeof(std::uint64_t));
  return result;
}

void stage::update(double learning_rate) {
  refuse_torn(*impl_);
  impl_->rows_in_step = impl_->batches_in_step = 0;
  impl_->update(learning_rate);
}
void stage::discard() {
  impl_->rows_in_step = impl_->batches_in_step = 0;
  impl_->discard();
}

begun_step stage::begun() {
  if (impl_->batches_in_step == 0) return {};
  const step_state now = impl_->read_step_state();
  return {.batches = impl_->batches_in_step,
          .rows = impl_->rows_in_step,
          .weight = now.weight_in_step,
          .running = now.progress.running,
          .bad_input = now.progress.bad_input,
          .bad_loss = now.progress.bad_loss};
}

void stage::go_on(const begun_step& step) {
  refuse_torn(*impl_);
  step_state now = impl_->read_step_state();
  now.weight_in_step = step.weight;
  now.progress.running = step.running;
  now.progress.bad_input = step.bad_input;
  now.progress.bad_loss = step.bad_loss;
  impl_->write_step_state(now);
  impl_->batches_in_step = step.batches;
  impl_->rows_in_step = step.rows;
  impl_->gradients_are_set(step.batches > 0);
}

void stage::reset(const metrics& start) {
  impl_->reset(start);
  impl_->set_latest(start);
  if (!impl_->confusion.empty()) gpu::fill(impl_->stream, impl_->confusion.data(), 0, impl_->confusion.size_bytes());
}

train::progress stage::progress() { return impl_->read_step_state().progress; }

const train::progress& stage::latest_progress() {
  impl& s = *impl_;
  if (s.asked && s.arrived.done()) {
    s.latest = s.landed();
    s.asked = false;
  }
  if (!s.asked) {
    gpu::copy(s.stream, s.landing, s.state, sizeof(step_state));
    s.arrived.record(s.stream);
    s.asked = true;
    if (s.stream.device().is_host()) s.latest = s.landed();
  }
  return s.latest;
}

void stage::observe(const void* x, std::size_t rows, std::size_t valid_rows, std::uint64_t first_row,
                    const void* weights) {
  if (rows == 0) return;
  const batch_rows batch{
      .x = x, .targets = x, .weights = weights, .rows = rows, .valid_rows = valid_rows, .first_row = first_row};
  check_rows(impl_->options, batch);
  impl_->observe(batch);
}

input_statistics stage::observed() {
  const std::size_t n = impl_->options.model.inputs;
  std::vector<double> all(3 * n);
  impl_->read(reinterpret_cast<const std::byte*>(impl_->sums.data()), reinterpret_cast<std::byte*>(all.data()),
              all.size() * sizeof(double));
  input_statistics result{std::vector<double>(n), std::vector<double>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    result.mean[i] = all[n + i];
    result.deviation[i] = all[i] > 0 ? std::sqrt(all[2 * n + i] / all[i]) : 0;
  }
  return result;
}

void stage::forget() { gpu::fill(impl_->stream, impl_->sums.data(), 0, impl_->sums.size_bytes()); }

void stage::set_normalisation(const input_statistics& statistics) { impl_->set_normalisation(statistics); }
const input_statistics& stage::normalisation() const noexcept { return impl_->normalisation; }

const std::vector<state_item>& stage::state() const noexcept { return impl_->items; }

void stage::read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes) {
  refuse_torn(*impl_);
  impl_->read(item.data + offset, to, bytes);
}

void stage::write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
  impl_->write(item.data + offset, from, bytes);
  impl_->changed();
  impl_->mended_bytes += bytes;
}

const std::vector<state_item>& stage::gradients() const noexcept { return impl_->gradient_items; }

void stage::write_gradients(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
  impl_->write(item.data + offset, from, bytes);
}

void stage::set_steps(std::uint64_t steps, std::uint64_t skipped) {
  if (impl_->torn && impl_->mended_bytes >= bytes_of(impl_->items)) impl_->torn = false;
  step_state now = impl_->read_step_state();
  now.progress.steps = steps;
  now.progress.skipped = skipped;
  now.progress.bad_input = now.progress.bad_loss = now.progress.bad_gradient = train::progress::no_row;
  now.progress.bad_label = now.progress.bad_weight = train::progress::no_row;
  impl_->write_step_state(now);
}

void stage::set_loss_scale(double scale, std::uint64_t clean_steps) {
  step_state now = impl_->read_step_state();
  now.progress.loss_scale = scale;
  now.progress.clean_steps = clean_steps;
  impl_->write_step_state(now);
}

std::string stage::algorithms() const { return impl_->algorithms(); }
std::string stage::set_algorithms(const std::string& chosen) { return impl_->set_algorithms(chosen); }

const stage_options& stage::options() const noexcept { return impl_->options; }
gpu::stream_ref stage::stream() const noexcept { return impl_->stream; }

}  // namespace penstock::train
