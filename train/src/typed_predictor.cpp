#include "elementwise.hpp"
#include "input_fault.hpp"
#include "predicted_rows.hpp"
#include "predictor_impl.hpp"
#include "stage_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

namespace penstock::train {
namespace {

using gpu::memory_kind;

template <class S>
class typed_predictor final : public predictor::impl {
 public:
  using T = arithmetic<S>;

  typed_predictor(gpu::stream_ref s, const predictor_options& o, std::shared_ptr<gpu::memory> m)
      : impl(s, o, std::move(m)), network_(make_network<S>(o.model, {.wanted = passes::forward})) {
    network_.bind(*memory, stream);
    input_ = reinterpret_cast<S*>(at(stage_items::input));
    mean_ = reinterpret_cast<T*>(at(stage_items::mean));
    scale_ = reinterpret_cast<T*>(at(stage_items::scale));
    predictions_ = reinterpret_cast<T*>(at(predictor_items::predictions));
    state_ = reinterpret_cast<step_state*>(at(stage_items::state));
    staging_ = memory->at(memory_kind::pinned, stage_items::staging);
    backend_ = make_backend<S>(stream, stage_options_of(options), workspaces(*memory));
    list_parameters(network_, "model", network_.parameter_data(), items);
    const step_state initial;
    write(reinterpret_cast<std::byte*>(state_), reinterpret_cast<const std::byte*>(&initial), sizeof initial);
  }

  const void* predict(const void* x, const void* x2, const row_block& block) override {
    const intake<S> first{.rows = {.block = block, .x = static_cast<const T*>(x), .x2 = static_cast<const T*>(x2)},
                          .columns = options.model.inputs,
                          .mean = mean_,
                          .scale = scale_,
                          .out = input_,
                          .state = state_};
    const auto rest = [&] {
      const train::pass<S> through{*backend_, stream, state_, 0, block.rows, false};
      predicted_rows(stream, options.form, block.rows, options.model.outputs, network_.forward(through, input_),
                     predictions_);
    };
    const auto work = [&] {
      backend_->take(first);
      rest();
    };
    if (stale_) round_parameters();
    if (block.rows == options.rows)
      backend_->replay(0, first, std::cref(rest));
    else
      backend_->run(std::cref(work));
    return predictions_;
  }

  void set(const input_statistics& statistics) override {
    std::vector<T> values(options.model.inputs);
    const auto put = [&](T* to) {
      write(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(values.data()),
            values.size() * sizeof(T));
    };
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(statistics.mean.at(i));
    put(mean_);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = statistics.deviation.at(i) > 0 ? static_cast<T>(1 / statistics.deviation[i]) : T(1);
    put(scale_);
  }

  void write(std::byte* to, const std::byte* from, std::size_t bytes) override {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t piece = std::min(bytes - done, staging_.size());
      std::memcpy(staging_.data(), from + done, piece);
      gpu::copy(stream, to + done, staging_.data(), piece);
      stream.synchronize();
      done += piece;
    }
    stale_ = true;
  }

  step_state read_state() override {
    step_state now;
    gpu::copy(stream, staging_.data(), state_, sizeof now);
    stream.synchronize();
    std::memcpy(static_cast<void*>(&now), staging_.data(), sizeof now);
    now.progress.bad_input = from_order_of_input(now.progress.bad_input);
    return now;
  }

  void name_not_finite(const void* x, const void* x2, const row_block& block, const predictor::row_sink& to) override {
    // A row's predictions have room for its mark.
    auto* const marks = reinterpret_cast<std::uint8_t*>(predictions_);
    const auto work = [&] {
      mark_not_finite<T>(stream,
                         {.columns = options.model.inputs,
                          .x = static_cast<const T*>(x),
                          .x2 = static_cast<const T*>(x2),
                          .mean = mean_,
                          .scale = scale_},
                         block.valid, marks);
    };
    backend_->run(std::cref(work));
    for (std::size_t first = 0; first < block.valid; first += staging_.size()) {
      const std::size_t rows = std::min(block.valid - first, staging_.size());
      gpu::copy(stream, staging_.data(), marks + first, rows);
      stream.synchronize();
      for (std::size_t i = 0; i < rows; ++i)
        if (staging_[i] != std::byte{0}) to(block.first_row + first + i);
    }
  }

  void forgive() override {
    const auto work = [&] { backend_->reset({}, true, state_); };
    backend_->run(std::cref(work));
  }

 private:
  std::byte* at(const char* name) const { return memory->at(memory_kind::device, name).data(); }

  void round_parameters() {
    const auto work = [&] {
      if constexpr (!std::is_same_v<S, T>)
        round_values<S>(stream, network_.parameters(), network_.parameter_data(), network_.rounded_data());
    };
    backend_->run(std::cref(work));
    stale_ = false;
  }

  network<S> network_;
  std::unique_ptr<backend<S>> backend_;
  S* input_ = nullptr;
  T* mean_ = nullptr;
  T* scale_ = nullptr;
  T* predictions_ = nullptr;
  step_state* state_ = nullptr;
  std::span<std::byte> staging_;
  bool stale_ = true;  // the rounded copy of the parameters is yet to follow
};

}  // namespace

template <class S>
gpu::ledger plan_predictor(gpu::device d, const predictor_options& options) {
  using T = arithmetic<S>;
  const network<S> model = make_network<S>(options.model, {.wanted = passes::forward});
  const std::size_t rows = options.rows, inputs = options.model.inputs, outputs = options.model.outputs;
  gpu::ledger ledger;
  model.plan(rows, ledger);
  ledger.add(memory_kind::device, stage_items::input, sides(options.model) * rows * inputs * sizeof(S),
             fmt::format("{} rows of {}", sides(options.model) * rows, inputs));
  ledger.add(memory_kind::device, stage_items::mean, inputs * sizeof(T));
  ledger.add(memory_kind::device, stage_items::scale, inputs * sizeof(T));
  ledger.add(memory_kind::device, predictor_items::predictions, rows * outputs * sizeof(T),
             fmt::format("{} rows of {}", rows, outputs));
  for (const char* landing : predictor_items::landings)
    ledger.add(memory_kind::pinned, landing, rows * outputs * sizeof(T), fmt::format("{} rows of {}", rows, outputs));
  if (d.is_cuda() && options.workspace_bytes > 0)
    ledger.add(memory_kind::device, stage_items::workspace, options.workspace_bytes, "cuBLASLt's");
  ledger.add(memory_kind::device, stage_items::state, sizeof(step_state));
  ledger.add(memory_kind::pinned, stage_items::staging,
             std::clamp<std::size_t>(model.parameters() * sizeof(T), 4096, std::size_t{1} << 20), "for weights");
  if (d.is_host()) add_blas_buffers(options.threads, ledger);
  return ledger;
}

template <class S>
std::unique_ptr<predictor::impl> make_typed_predictor(gpu::stream_ref stream, const predictor_options& options,
                                                      std::shared_ptr<gpu::memory> memory) {
  return std::make_unique<typed_predictor<S>>(stream, options, std::move(memory));
}

#define PENSTOCK_INSTANTIATE(S)                                                                                \
  template gpu::ledger plan_predictor<S>(gpu::device, const predictor_options&);                               \
  template std::unique_ptr<predictor::impl> make_typed_predictor<S>(gpu::stream_ref, const predictor_options&, \
                                                                    std::shared_ptr<gpu::memory>);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
PENSTOCK_INSTANTIATE(bfloat16)
PENSTOCK_INSTANTIATE(float16)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train
