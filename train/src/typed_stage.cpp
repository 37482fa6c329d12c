#include "elementwise.hpp"
#include "initial_weights.hpp"
#include "parameter_updates.hpp"
#include "score_rows.hpp"
#include "stage_impl.hpp"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <type_traits>

namespace penstock::train {
namespace {

template <class S>
class typed_stage final : public stage::impl {
 public:
  using T = arithmetic<S>;

  typed_stage(gpu::stream_ref s, const stage_options& o, std::shared_ptr<gpu::memory> m)
      : impl(s, o, std::move(m)),
        network_(make_network<S>(o.model, {.segment = o.recompute_layers, .offload = o.offload.activations})) {
    network_.bind(*memory, stream);
    input_ = network_.inputs_place();
    if (input_ == nullptr) input_ = reinterpret_cast<S*>(at(stage_items::input));
    mean_ = at(stage_items::mean);
    scale_ = at(stage_items::scale);
    plan_loss();
    if (needs_norm(o)) norm_sums_ = reinterpret_cast<double*>(at(stage_items::norm_sums));
    updates_.bind(s, o, *memory, network_, state);
    backend_ = make_backend<S>(s, o, workspaces(*memory));
    list_state();
    start();
  }

  void pass(const batch_rows& batch, bool gradient) override {
    // The same launches every time, but for the first pass of a step, which sets the gradients that later ones add to.
    const auto rest = [&] {
      const train::pass<S> through = pass_of(batch, gradient);
      score(through);
      if (gradient) network_.backward(through, input_, accumulated_);
      backend_->join();
    };
    take_through(!gradient ? 0 : accumulated_ ? 2 : 1, intake_of(batch, 0), std::cref(rest));
    accumulated_ = accumulated_ || gradient;
  }

  void update(double learning_rate) override {
    const update_rule rule = rule_of(learning_rate);
    const auto work = [&] {
      backend_->join();
      begin_update(rule, false);
      optimize();
    };
    accumulated_ = false;  // whatever comes of it, the next pass sets the gradients
    backend_->run(std::cref(work));
  }

  void step(const batch_rows& batch, double learning_rate) override {
    // Copies of offloaded moments are asked for one by one, so that one which fails is known.
    if (accumulated_ || updates_.offloads()) {
      pass(batch, true);
      return update(learning_rate);
    }
    update_rule rule = rule_of(0);  // recorded once: the rate is read where the intake has noted it
    rule.rate_is_noted = true;
    // What the update begins with needs the loss alone, unless the gradient's norm decides, or backward reads the
    // number of the step.
    const bool early = norm_sums_ == nullptr && options.model.dropout == 0;
    const auto work = [&] {
      const train::pass<S> through = pass_of(batch, true);
      score(through);
      if (early) begin_update(rule, true);
      network_.backward(through, input_, false);
      backend_->join();
      if (!early) begin_update(rule, false);
      optimize();
    };
    take_through(3, intake_of(batch, learning_rate), std::cref(work));
    torn = false;  // recording it may have ended midway: the step itself has not
  }

  void discard() override {
    const auto work = [&] {
      backend_->join();
      backend_->discard(state);
    };
    backend_->run(std::cref(work));
    accumulated_ = false;
  }

  void reset(const metrics& start) override {
    const auto work = [&] {
      backend_->join();
      backend_->reset(start, options.non_finite == non_finite::skip, state);
    };
    backend_->run(std::cref(work));
  }

  void changed() noexcept override { stale_ = true; }
  void gradients_are_set(bool there) noexcept override { accumulated_ = there; }

  void observe(const batch_rows& batch) override {
    const std::size_t n = options.model.inputs;
    const taken_rows<T> rows{.block = {batch.rows, batch.valid_rows, batch.first_row},
                             .x = static_cast<const T*>(batch.x),
                             .weights = static_cast<const T*>(batch.weights)};
    const auto work = [&] { backend_->observe(rows, n, {sums.data(), sums.data() + n, sums.data() + 2 * n}, state); };
    backend_->run(std::cref(work));
  }

  std::string algorithms() const override { return backend_->algorithms(); }
  std::string set_algorithms(const std::string& chosen) override {
    stream.synchronize();  // what was recorded with others may still run
    return backend_->set_algorithms(chosen);
  }

  void set_normalisation(const input_statistics& to) override {
    const std::size_t n = options.model.inputs;
    if (to.mean.size() != n || to.deviation.size() != n)
      throw std::invalid_argument(
          fmt::format("{} means and {} deviations for {} inputs", to.mean.size(), to.deviation.size(), n));
    put(mean_, n, [&](std::size_t i) { return static_cast<T>(to.mean[i]); });
    put(scale_, n, [&](std::size_t i) { return to.deviation[i] > 0 ? static_cast<T>(1 / to.deviation[i]) : T(1); });
    normalisation = to;
  }

 private:
  intake<S> intake_of(const batch_rows& batch, double learning_rate) const {
    return {.rows = {.block = {batch.rows, batch.valid_rows, batch.first_row},
                     .x = static_cast<const T*>(batch.x),
                     .x2 = static_cast<const T*>(batch.x2),
                     .targets = batch.targets,
                     .weights = static_cast<const T*>(batch.weights),
                     .learning_rate = learning_rate},
            .columns = options.model.inputs,
            .mean = mean_,
            .scale = scale_,
            .out = input_,
            .state = state};
  }

  /// Takes the rows of a pass in and does what follows: replayed where it is as many rows as are planned for.
  void take_through(std::size_t key, const intake<S>& first, const std::function<void()>& rest) {
    if (stale_) round_parameters();
    if (first.rows.block.rows == options.rows) return backend_->replay(key, first, rest);
    const auto work = [&] {
      backend_->take(first);
      rest();
    };
    backend_->run(std::cref(work));
  }

  train::pass<S> pass_of(const batch_rows& batch, bool gradient) {
    return {*backend_, stream, state, options.seed, batch.rows, gradient};
  }

  /// Forward, the loss of each row, and their sums.
  void score(const train::pass<S>& through) {
    S* const outputs = network_.forward(through, input_);
    score_rows(stream, loss_, through.rows, outputs, through.training, state);
    backend_->add_scores(loss_.scores, through.training, state);
  }

  update_rule rule_of(double learning_rate) const {
    update_rule rule{.learning_rate = learning_rate,
                     .clip_norm = options.clip_norm,
                     .skip = options.non_finite == non_finite::skip,
                     .scaled = options.precision == precision::fp16};
    if (const auto* o = std::get_if<adamw>(&options.optimizer)) rule.beta1 = o->beta1, rule.beta2 = o->beta2;
    return rule;
  }

  void begin_update(const update_rule& rule, bool beside) {
    if (norm_sums_ != nullptr)
      backend_->square_gradients(network_.parameters(), network_.gradient_data(), norm_sums_, state);
    torn = true;
    mended_bytes = 0;
    backend_->begin_update(rule, state, beside);
  }

  void optimize() {
    updates_.run();
    torn = false;
  }

  T* at(const char* name) const { return reinterpret_cast<T*>(memory->at(gpu::memory_kind::device, name).data()); }

  void round_parameters() {
    const auto work = [&] {
      if constexpr (!std::is_same_v<S, T>)
        round_values<S>(stream, network_.parameters(), network_.parameter_data(), network_.rounded_data());
    };
    backend_->run(std::cref(work));
    stale_ = false;
  }

  /// Writes value_of(i) for i < count.
  template <class F>
  void put(T* to, std::size_t count, F value_of) {
    write_values(stream, staging, to, count, [&](std::size_t first, std::span<T> values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(first + i);
    });
  }

  void plan_loss() {
    loss_ = {.options = options.loss,
             .targets = options.targets,
             .width = options.model.outputs,
             .top_k = options.top_k,
             .scores = reinterpret_cast<row_score<T>*>(at(stage_items::scores))};
    if (options.confusion) {
      const std::size_t classes = classes_of(options.loss, options.model.outputs);
      confusion = {reinterpret_cast<std::uint64_t*>(at(stage_items::confusion)), classes * classes};
      loss_.confusion = confusion.data();
    }
    if (options.class_weights.empty()) return;
    T* const weights = at(stage_items::class_weights);
    put(weights, options.model.outputs, [&](std::size_t c) { return static_cast<T>(options.class_weights[c]); });
    loss_.class_weights = weights;
  }

  void list_state() {
    list_parameters(network_, "model", network_.parameter_data(), items);
    updates_.list(network_, items);
    list_parameters(network_, "gradients", network_.gradient_data(), gradient_items);
  }

  void start() {
    updates_.clear(stream);
    step_state initial;
    if (options.precision == precision::fp16) initial.progress.loss_scale = first_loss_scale;
    write_step_state(initial);
    write_initial_weights(stream, staging, network_, options.seed);
    gpu::fill(stream, sums.data(), 0, sums.size_bytes());
    if (!confusion.empty()) gpu::fill(stream, confusion.data(), 0, confusion.size_bytes());
    const std::size_t n = options.model.inputs;
    set_normalisation({std::vector<double>(n, 0.0), std::vector<double>(n, 1.0)});
  }

  network<S> network_;
  std::unique_ptr<backend<S>> backend_;
  S* input_ = nullptr;
  T* mean_ = nullptr;
  T* scale_ = nullptr;
  planned_loss<T> loss_;
  parameter_updates<S> updates_;
  double* norm_sums_ = nullptr;
  bool accumulated_ = false;
  bool stale_ = true;  // parameters were set: their rounded copy is yet to follow
};

}  // namespace

template <class S>
std::unique_ptr<stage::impl> make_typed_stage(gpu::stream_ref stream, const stage_options& options,
                                              std::shared_ptr<gpu::memory> memory) {
  return std::make_unique<typed_stage<S>>(stream, options, std::move(memory));
}
template std::unique_ptr<stage::impl> make_typed_stage<float>(gpu::stream_ref, const stage_options&,
                                                              std::shared_ptr<gpu::memory>);
template std::unique_ptr<stage::impl> make_typed_stage<double>(gpu::stream_ref, const stage_options&,
                                                               std::shared_ptr<gpu::memory>);
template std::unique_ptr<stage::impl> make_typed_stage<bfloat16>(gpu::stream_ref, const stage_options&,
                                                                 std::shared_ptr<gpu::memory>);
template std::unique_ptr<stage::impl> make_typed_stage<float16>(gpu::stream_ref, const stage_options&,
                                                                std::shared_ptr<gpu::memory>);

}  // namespace penstock::train
