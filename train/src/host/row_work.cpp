#include "row_work.hpp"

#include "../activation.hpp"
#include "../merge_moments.hpp"
#include "counting.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

namespace penstock::train::host {
namespace {

constexpr std::size_t tile_rows = 16;
constexpr std::size_t tile_columns = 64;

template <class F>
void for_each_tile(std::size_t n, std::size_t extent, F f) {
  tbb::parallel_for(std::size_t{0}, (n + extent - 1) / extent,
                    [&](std::size_t tile) { f(tile * extent, std::min(n, (tile + 1) * extent)); });
}

/// The rows of one input; they are numbered from `first_row` on.
template <class S, class T = arithmetic<S>>
void take_input(const intake<S>& what, const T* x, S* out, std::uint64_t first_row) {
  const std::size_t columns = what.columns;
  const T *const mean = what.mean, *const scale = what.scale, *const weights = what.rows.weights;
  for_each_tile(what.rows.block.rows, tile_rows, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      S* const to = out + i * columns;
      if (i >= what.rows.block.valid || (weights != nullptr && weights[i] == T(0))) {
        std::fill_n(to, columns, static_cast<S>(T(0)));
        continue;
      }
      const T* const from = x + i * columns;
      // x - x is 0 for finite x and NaN otherwise: tells without a branch for each element.
      int doubt = 0;
      for (std::size_t j = 0; j < columns; ++j) {
        const T value = (from[j] - mean[j]) * scale[j];
        to[j] = static_cast<S>(value);
        doubt |= !(value - value == T(0));
      }
      if (doubt != 0) note_input(what.state->progress.bad_input, first_row + i);
    }
  });
}

}  // namespace

template <class S>
void take(const intake<S>& what) {
  const taken_rows<arithmetic<S>>& rows = what.rows;
  step_state& state = *what.state;
  state.block = rows.block;
  state.targets = rows.targets;
  state.learning_rate = rows.learning_rate;
  state.weights = rows.weights;
  take_input(what, rows.x, what.out, rows.block.first_row);
  if (rows.x2 != nullptr)
    take_input(what, rows.x2, what.out + rows.block.rows * what.columns,
               rows.block.first_row + progress::of_second_input);
}

template <class T>
void observe(const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments, step_state& state) {
  const row_block& block = rows.block;
  const auto masked = [&](std::size_t i) { return rows.weights != nullptr && rows.weights[i] == T(0); };
  for_each_tile(columns, tile_columns, [&](std::size_t first, std::size_t last) {
    const std::size_t n = last - first;
    double counts[tile_columns] = {}, sums[tile_columns] = {}, squares[tile_columns] = {};
    double origins[tile_columns] = {};  // the first value: distances from it add up to exactly 0 where all are the same
    for (std::size_t i = 0; i < block.valid; ++i) {
      const T* const row = rows.x + i * columns + first;
      bool bad = false;
      if (masked(i)) continue;
      for (std::size_t j = 0; j < n; ++j) {
        const bool finite = std::isfinite(row[j]);
        bad |= !finite;
        const auto value = static_cast<double>(row[j]);
        origins[j] = finite && counts[j] == 0 ? value : origins[j];
        counts[j] += finite ? 1 : 0;
        sums[j] += finite ? value - origins[j] : 0;
      }
      if (bad) note_input(state.progress.bad_input, block.first_row + i);
    }
    for (std::size_t j = 0; j < n; ++j) sums[j] = counts[j] > 0 ? origins[j] + sums[j] / counts[j] : 0;
    for (std::size_t i = 0; i < block.valid; ++i) {
      const T* const row = rows.x + i * columns + first;
      if (masked(i)) continue;
      for (std::size_t j = 0; j < n; ++j) {
        const double distance = std::isfinite(row[j]) ? static_cast<double>(row[j]) - sums[j] : 0;
        squares[j] += distance * distance;
      }
    }
    for (std::size_t j = 0; j < n; ++j) merge_moments(moments, first + j, counts[j], sums[j], squares[j]);
  });
}

template <class T>
void add_scores(const row_score<T>* scores, bool gradient, step_state& state) {
  metrics& sums = state.progress.running;
  double weight = 0;
  for (std::size_t i = 0; i < state.block.valid; ++i) {
    const row_score<T>& row = scores[i];
    sums.loss_sum += static_cast<double>(row.loss);
    sums.square_sum += static_cast<double>(row.square);
    weight += static_cast<double>(row.weight);
    sums.rows += (row.hits & hit_counted) != 0 ? 1 : 0;
    sums.correct += (row.hits & hit_first) != 0 ? 1 : 0;
    sums.in_top_k += (row.hits & hit_top) != 0 ? 1 : 0;
  }
  sums.weight_sum += weight;
  if (gradient) state.weight_in_step += weight;
}

template <class S, class T>
void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy, T* bias_gradient,
                         bool accumulate) {
  visit_activation(kind, [&](auto f) {
    for_each_tile(columns, tile_columns, [&](std::size_t first, std::size_t last) {
      T sums[tile_columns] = {};
      const std::size_t n = last - first;
      for (std::size_t i = 0; i < rows; ++i) {
        const S* const output = y + i * columns + first;
        S* const change = dy + i * columns + first;
        for (std::size_t j = 0; j < n; ++j) {
          change[j] = static_cast<S>(f.gradient(static_cast<T>(output[j]), static_cast<T>(change[j])));
          sums[j] += static_cast<T>(change[j]);
        }
      }
      for (std::size_t j = 0; j < n; ++j)
        bias_gradient[first + j] = accumulate ? bias_gradient[first + j] + sums[j] : sums[j];
    });
  });
}

template <class T>
void square_gradients(std::size_t count, const T* gradients, double* piece_sums, step_state& state) {
  const std::size_t extent = (count + norm_pieces - 1) / norm_pieces;
  tbb::parallel_for(std::size_t{0}, norm_pieces, [&](std::size_t piece) {
    double sum = 0;
    for (std::size_t i = piece * extent; i < std::min(count, (piece + 1) * extent); ++i)
      sum += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
    piece_sums[piece] = sum;
  });
  state.gradient_squares = 0;
  for (std::size_t piece = 0; piece < norm_pieces; ++piece) state.gradient_squares += piece_sums[piece];
}

#define PENSTOCK_INSTANTIATE(T)                                                                 \
  template void observe(const taken_rows<T>&, std::size_t, const moment_columns&, step_state&); \
  template void add_scores(const row_score<T>*, bool, step_state&);                             \
  template void square_gradients(std::size_t, const T*, double*, step_state&);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
#undef PENSTOCK_INSTANTIATE

#define PENSTOCK_INSTANTIATE(S, T)      \
  template void take(const intake<S>&); \
  template void activation_gradient(activation, std::size_t, std::size_t, const S*, S*, T*, bool);
PENSTOCK_INSTANTIATE(float, float)
PENSTOCK_INSTANTIATE(double, double)
PENSTOCK_INSTANTIATE(bfloat16, float)
PENSTOCK_INSTANTIATE(float16, float)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train::host
