#include <penstock/train/predictor.hpp>

#include "checkpoint.hpp"
#include "pass_errors.hpp"
#include "predictor_impl.hpp"
#include "stage_memory.hpp"

#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

namespace penstock::train {
namespace {

/// Calls `f` with a value of the type that activations of these options have.
template <class F>
auto visit_element(const predictor_options& options, F&& f) {
  if (options.compute == type::float64) return f(double{});
  if (options.precision == precision::bf16) return f(bfloat16{});
  if (options.precision == precision::fp16) return f(float16{});
  return f(float{});
}

const void* inputs_of(const pipeline::batch& batch, const std::string& x, const predictor_options& options) {
  const pipeline::field_view view = batch.view(x);
  if (view.element != options.compute || view.row_bytes != options.model.inputs * size_of(options.compute))
    throw std::invalid_argument(fmt::format("a row of field '{}' has {} bytes of {}; the model takes {} inputs of {}",
                                            x, view.row_bytes, name_of(view.element), options.model.inputs,
                                            name_of(options.compute)));
  return view.data;
}

/// Weights of which some are of another file are none of a model.
void refuse_torn(const predictor::impl& p) {
  if (p.torn)
    throw error(
        "a checkpoint could not be read to its end, and some of the weights are those of before; load one again");
}

/// Predictions on their way to the host: two landing places, one filled while the other is handed on.
class landing_places {
 public:
  landing_places(gpu::stream_ref stream, const gpu::memory& memory, std::size_t row_bytes, const predictor::sink& to)
      : stream_(stream),
        row_bytes_(row_bytes),
        to_(to),
        events_{gpu::event(stream.device(), gpu::event_use::waiting),
                gpu::event(stream.device(), gpu::event_use::waiting)} {
    for (std::size_t n = 0; n < 2; ++n) places_[n] = memory.at(gpu::memory_kind::pinned, predictor_items::landings[n]);
  }

  void take(const void* predictions, std::uint64_t first_row, std::size_t rows) {
    const std::size_t here = next_;
    next_ = 1 - next_;
    gpu::copy(stream_, places_[here].data(), predictions, rows * row_bytes_);
    events_[here].record(stream_);
    waiting_[here] = {first_row, rows};
    hand_on(next_);
  }
  void finish() { hand_on(1 - next_); }

 private:
  struct part {
    std::uint64_t first_row = 0;
    std::size_t rows = 0;
  };

  void hand_on(std::size_t n) {
    if (waiting_[n].rows == 0) return;
    events_[n].synchronize();
    to_(waiting_[n].first_row, waiting_[n].rows, places_[n].first(waiting_[n].rows * row_bytes_));
    waiting_[n].rows = 0;
  }

  gpu::stream_ref stream_;
  std::size_t row_bytes_;
  const predictor::sink& to_;
  std::array<gpu::event, 2> events_;
  std::array<std::span<std::byte>, 2> places_;
  std::array<part, 2> waiting_{};
  std::size_t next_ = 0;
};

}  // namespace

stage_options stage_options_of(const predictor_options& o) {
  stage_options stage{.model = o.model, .rows = o.rows, .compute = o.compute, .precision = o.precision};
  stage.loss = mean_squared_error{};
  stage.targets = target::values;
  stage.workspace_bytes = o.workspace_bytes;
  stage.threads = o.threads;
  return stage;
}

gpu::ledger plan(gpu::device d, const predictor_options& options) {
  check(d, stage_options_of(options));
  return visit_element(options, [&](auto zero) { return plan_predictor<decltype(zero)>(d, options); });
}

predictor_options options_of(const std::filesystem::path& checkpoint) { return read_model(checkpoint); }

predictor::predictor(gpu::stream_ref stream, const predictor_options& options, std::shared_ptr<gpu::memory> memory) {
  check(stream.device(), stage_options_of(options));
  impl_ = visit_element(
      options, [&](auto zero) { return make_typed_predictor<decltype(zero)>(stream, options, std::move(memory)); });
}
predictor::predictor(predictor&&) noexcept = default;
predictor& predictor::operator=(predictor&&) noexcept = default;
predictor::~predictor() = default;

std::string predictor::load(const std::filesystem::path& checkpoint) {
  impl& self = *impl_;
  loaded_weights there =
      load_weights(checkpoint, self.options.model, self.items,
                   [&](const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
                     self.torn = true;
                     self.write(item.data + offset, from, bytes);
                   });
  self.set(there.statistics);
  self.torn = false;
  return std::move(there.checksum);
}

const void* predictor::predict(const void* x, std::size_t rows, std::uint64_t first_row, const void* x2) {
  if (x == nullptr || rows == 0 || rows > impl_->options.rows)
    throw std::invalid_argument(
        fmt::format("{} rows for a predictor that is planned for 1 to {}", rows, impl_->options.rows));
  if ((x2 != nullptr) != (sides(impl_->options.model) == 2))
    throw std::invalid_argument(
        fmt::format("the model has {} inputs, and there are rows of {}", sides(impl_->options.model), x2 ? 2 : 1));
  refuse_torn(*impl_);
  return impl_->predict(x, x2, {rows, rows, first_row});
}

std::uint64_t predictor::bad_input() { return impl_->read_state().progress.bad_input; }

/// The device notes the first such row of a block by itself, and marks all of them on request. Rows do not mix: what
/// was predicted of the others is right. All predictions are copied already, in stream order.
void predictor::name_rows(const rows_at& block, const row_sink& not_finite) {
  if (bad_input() == progress::no_row) return;
  impl_->name_not_finite(block.x, block.x2, {block.rows, block.rows, block.first_row}, not_finite);
  impl_->forgive();
}

void predictor::predict(pipeline::pipeline& from, const std::string& x, const sink& to, std::stop_token stop,
                        const std::string& x2, const row_sink& not_finite) {
  pass_errors failing(from, "prediction", {0, 0});
  const sink hand_on = [&](std::uint64_t first_row, std::size_t rows, std::span<const std::byte> values) {
    failing.of_caller([&] { to(first_row, rows, values); });
  };
  const row_sink leave_out = [&](std::uint64_t row) { failing.of_caller([&] { not_finite(row); }); };
  try {
    predict_all(from, {x, x2}, hand_on, stop, not_finite ? leave_out : row_sink(), failing);
  } catch (...) {
    failing.rethrow();
  }
}

void predictor::predict_all(pipeline::pipeline& from, const input_fields& fields, const sink& to, std::stop_token stop,
                            const row_sink& not_finite, pass_errors& failing) {
  impl& self = *impl_;
  const predictor_options& o = self.options;
  landing_places places(self.stream, *self.memory, o.model.outputs * size_of(o.compute), to);
  self.forgive();
  auto range = from.epochs(0, 1, {.stream = self.stream, .stop = stop});
  std::uint64_t first_row = 0;
  while (const pipeline::batch batch = range.next()) {
    failing.begin(batch.index());
    if (batch.valid_rows() == 0) continue;  // of shards one may have a batch less than others, and gets one of padding
    const void* const first = inputs_of(batch, fields.x, o);
    const void* const second = fields.x2.empty() ? nullptr : inputs_of(batch, fields.x2, o);
    const void* const values = predict(first, batch.valid_rows(), first_row, second);
    places.take(values, first_row, batch.valid_rows());
    if (not_finite) name_rows({first, second, batch.valid_rows(), first_row}, not_finite);
    first_row += batch.valid_rows();
  }
  places.finish();
  const std::uint64_t bad = bad_input();
  if (bad == progress::no_row) return;
  const bool of_second = (bad & progress::of_second_input) != 0;
  const std::uint64_t row = from.row_order().row(0, bad & ~progress::of_second_input);
  const auto stored = from.place_of(of_second ? fields.x2 : fields.x, row);
  const std::string place = stored ? fmt::format("{}:{} row {}: ", stored->file, stored->dataset, stored->row) : "";
  throw error(fmt::format("{}an input is not finite (NaN or infinity), or becomes so when it is normalised; mend the "
                          "data, or have such rows left out (--skip-non-finite) (row {})",
                          place, row),
              {.rows = {row}, .file = {}});
}

const predictor_options& predictor::options() const noexcept { return impl_->options; }

}  // namespace penstock::train
