// Losses, once for both devices: a build without CUDA compiles this file as C++.
#include "score_rows.hpp"

#include "distance_loss.hpp"
#include "for_each_row.hpp"
#include "softmax_loss.hpp"
#include "yes_no_loss.hpp"

namespace penstock::train {
namespace {

template <class S, class Loss>
struct scored_row {
  using T = arithmetic<S>;
  Loss loss;
  target targets;
  S* outputs;
  row_score<T>* scores;
  bool gradient;
  step_state* state;

  template <class Lanes>
  PENSTOCK_HOST_DEVICE void operator()(Lanes lanes, std::size_t i) const {
    S* const z = outputs + i * loss.width;
    const row_score<T> score = score_of(lanes, i, z);
    if (gradient && score.hits == 0)
      for (std::size_t c = lanes.index(); c < loss.width; c += lanes.count()) z[c] = static_cast<S>(T(0));
    if (lanes.index() == 0) scores[i] = score;
  }

 private:
  template <class Lanes>
  PENSTOCK_HOST_DEVICE row_score<T> score_of(Lanes lanes, std::size_t i, S* z) const {
    const T weight = weight_of(i);
    if (weight == T(0)) return {};
    train::progress& noted = state->progress;
    const std::uint64_t row = state->block.first_row + i;
    if (!(weight > T(0)) || !(weight - weight == T(0))) return at_fault(lanes, noted.bad_weight, row);
    const row_target<T> target = target_of(i);
    if (!loss.accepts(lanes, target)) return at_fault(lanes, noted.bad_label, row);
    const T scale = gradient ? static_cast<T>(noted.loss_scale) : T(0);
    const row_score<T> score = loss(lanes, z, target, {weight, weight * scale});
    if (score.loss - score.loss == T(0)) return score;
    if (lanes.index() == 0) lanes.note_first(noted.bad_loss, row);
    // An evaluation has no step to skip: the row's loss is left out, and its prediction counts as it is.
    return gradient ? score : row_score<T>{.hits = score.hits};
  }

  template <class Lanes>
  PENSTOCK_HOST_DEVICE static row_score<T> at_fault(Lanes lanes, std::uint64_t& where, std::uint64_t row) {
    if (lanes.index() == 0) lanes.note_first(where, row);
    return {};
  }

  PENSTOCK_HOST_DEVICE T weight_of(std::size_t i) const {
    if (i >= state->block.valid) return T(0);
    return state->weights != nullptr ? static_cast<const T*>(state->weights)[i] : T(1);
  }

  PENSTOCK_HOST_DEVICE row_target<T> target_of(std::size_t i) const {
    if (targets == target::values) return {0, static_cast<const T*>(state->targets) + i * loss.width};
    const std::int64_t label = static_cast<const std::int32_t*>(state->targets)[i];
    return {targets == target::label_from_one ? label - 1 : label, nullptr};
  }
};

/// Calls `f` with the row-wise functor of the loss.
template <class S, class F>
void visit_loss(const planned_loss<arithmetic<S>>& planned, F&& f) {
  using T = arithmetic<S>;
  if (const auto* softmax = std::get_if<softmax_cross_entropy>(&planned.options))
    return f(softmax_loss<S>{planned.width, static_cast<T>(softmax->label_smoothing), planned.class_weights,
                             planned.top_k, planned.confusion});
  if (const auto* binary = std::get_if<binary_cross_entropy>(&planned.options))
    return f(yes_no_loss<S, sigmoid_entropy<T>>{
        planned.width, {static_cast<T>(binary->positive_weight)}, planned.confusion});
  if (const auto* o = std::get_if<huber>(&planned.options))
    return f(distance_loss<S, huber_distance<T>>{planned.width, {static_cast<T>(o->delta)}});
  if (const auto* o = std::get_if<pairwise_ranking>(&planned.options)) {
    // The logistic loss of a lead is the cross-entropy of its sigmoid.
    if (o->margin == 0) return f(yes_no_loss<S, sigmoid_entropy<T>>{planned.width, {T(1)}, planned.confusion});
    return f(yes_no_loss<S, missed_margin<T>>{planned.width, {static_cast<T>(o->margin)}, planned.confusion});
  }
  f(distance_loss<S, squared_distance<T>>{planned.width, {}});
}

}  // namespace

template <class S>
void score_rows(gpu::stream_ref stream, const planned_loss<arithmetic<S>>& planned, std::size_t rows, S* outputs,
                bool gradient, step_state* state) {
  visit_loss<S>(planned, [&](const auto& loss) {
    using loss_type = std::remove_cvref_t<decltype(loss)>;
    for_each_row(stream, rows,
                 scored_row<S, loss_type>{loss, planned.targets, outputs, planned.scores, gradient, state});
  });
}

template void score_rows(gpu::stream_ref, const planned_loss<float>&, std::size_t, float*, bool, step_state*);
template void score_rows(gpu::stream_ref, const planned_loss<double>&, std::size_t, double*, bool, step_state*);
template void score_rows(gpu::stream_ref, const planned_loss<float>&, std::size_t, bfloat16*, bool, step_state*);
template void score_rows(gpu::stream_ref, const planned_loss<float>&, std::size_t, float16*, bool, step_state*);

}  // namespace penstock::train
