#include "row_work.hpp"

#include "../activation.hpp"
#include "../merge_moments.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
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

/// Tiles run at once: the smallest row wins, whichever comes first.
void note_first(std::uint64_t& where, std::uint64_t row) {
  std::atomic_ref<std::uint64_t> first(where);
  std::uint64_t seen = first.load();
  while (row < seen && !first.compare_exchange_weak(seen, row)) {
  }
}

/// The loss of one row; its gradient in place of the logits. No loss (NaN and a note) for a label outside the classes.
template <class T>
struct row_result {
  T loss = 0;
  bool hit = false;
};

template <class T>
row_result<T> row_loss(std::size_t classes, T* z, std::size_t label, bool gradient) {
  const std::size_t top = static_cast<std::size_t>(std::max_element(z, z + classes) - z);
  const T peak = z[top], at_label = z[label];
  T sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += std::exp(z[c] - peak);
  const T loss = std::log(sum) + peak - at_label;
  if (gradient) {
    const T scale = T(1) / sum;
    for (std::size_t c = 0; c < classes; ++c) z[c] = std::exp(z[c] - peak) * scale;
    z[label] -= T(1);
  }
  return {loss, top == label};
}

}  // namespace

template <class T>
void take(const row_block& block, std::size_t columns, const T* x, const std::int32_t* labels, const T* mean,
          const T* scale, T* out, step_state& state) {
  state.block = block;
  state.labels = labels;
  for_each_tile(block.rows, tile_rows, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      T* const to = out + i * columns;
      if (i >= block.valid) {
        std::fill_n(to, columns, T(0));
        continue;
      }
      const T* const from = x + i * columns;
      // x - x is 0 for finite x and NaN otherwise: tells without a branch for each element.
      int doubt = 0;
      for (std::size_t j = 0; j < columns; ++j) {
        to[j] = (from[j] - mean[j]) * scale[j];
        doubt |= !(to[j] - to[j] == T(0));
      }
      if (doubt != 0) note_first(state.progress.bad_input, block.first_row + i);
    }
  });
}

template <class T>
void observe(const row_block& block, std::size_t columns, const T* x, const moment_columns& moments,
             step_state& state) {
  for_each_tile(columns, tile_columns, [&](std::size_t first, std::size_t last) {
    const std::size_t n = last - first;
    double counts[tile_columns] = {}, sums[tile_columns] = {}, squares[tile_columns] = {};
    for (std::size_t i = 0; i < block.valid; ++i) {
      const T* const row = x + i * columns + first;
      bool bad = false;
      for (std::size_t j = 0; j < n; ++j) {
        const bool finite = std::isfinite(row[j]);
        bad |= !finite;
        counts[j] += finite ? 1 : 0;
        sums[j] += finite ? static_cast<double>(row[j]) : 0;
      }
      if (bad) note_first(state.progress.bad_input, block.first_row + i);
    }
    for (std::size_t j = 0; j < n; ++j) sums[j] = counts[j] > 0 ? sums[j] / counts[j] : 0;
    for (std::size_t i = 0; i < block.valid; ++i) {
      const T* const row = x + i * columns + first;
      for (std::size_t j = 0; j < n; ++j) {
        const double distance = std::isfinite(row[j]) ? static_cast<double>(row[j]) - sums[j] : 0;
        squares[j] += distance * distance;
      }
    }
    for (std::size_t j = 0; j < n; ++j) merge_moments(moments, first + j, counts[j], sums[j], squares[j]);
  });
}

template <class T>
void softmax_cross_entropy(std::size_t classes, T* logits, T* row_losses, bool gradient, step_state& state) {
  const row_block& block = state.block;
  const std::int32_t* const labels = state.labels;
  std::atomic<std::uint64_t> hits{0};
  for_each_tile(block.rows, tile_rows, [&](std::size_t first, std::size_t last) {
    std::uint64_t hits_here = 0;
    for (std::size_t i = first; i < last; ++i) {
      T* const z = logits + i * classes;
      const bool in_range = i < block.valid && labels[i] >= 0 && static_cast<std::size_t>(labels[i]) < classes;
      if (!in_range) {
        if (i < block.valid) note_first(state.progress.bad_label, block.first_row + i);
        row_losses[i] = 0;
        if (gradient) std::fill_n(z, classes, T(0));
        continue;
      }
      const row_result<T> result = row_loss(classes, z, static_cast<std::size_t>(labels[i]), gradient);
      if (!std::isfinite(result.loss)) note_first(state.progress.bad_loss, block.first_row + i);
      row_losses[i] = result.loss;
      hits_here += result.hit;
    }
    hits += hits_here;
  });
  metrics& sums = state.progress.running;
  for (std::size_t i = 0; i < block.valid; ++i) sums.loss_sum += static_cast<double>(row_losses[i]);
  sums.correct += hits;
  sums.rows += block.valid;
  if (gradient) state.rows_in_step += block.valid;
}

template <class T>
void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const T* y, T* dy, T* bias_gradient,
                         bool accumulate) {
  visit_activation(kind, [&](auto f) {
    for_each_tile(columns, tile_columns, [&](std::size_t first, std::size_t last) {
      T sums[tile_columns] = {};
      const std::size_t n = last - first;
      for (std::size_t i = 0; i < rows; ++i) {
        const T* const output = y + i * columns + first;
        T* const change = dy + i * columns + first;
        for (std::size_t j = 0; j < n; ++j) {
          change[j] = f.gradient(output[j], change[j]);
          sums[j] += change[j];
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

#define PENSTOCK_INSTANTIATE(T)                                                                            \
  template void take(const row_block&, std::size_t, const T*, const std::int32_t*, const T*, const T*, T*, \
                     step_state&);                                                                         \
  template void observe(const row_block&, std::size_t, const T*, const moment_columns&, step_state&);      \
  template void softmax_cross_entropy(std::size_t, T*, T*, bool, step_state&);                             \
  template void activation_gradient(activation, std::size_t, std::size_t, const T*, T*, T*, bool);
template void square_gradients(std::size_t, const float*, double*, step_state&);
template void square_gradients(std::size_t, const double*, double*, step_state&);
PENSTOCK_INSTANTIATE(float)
PENSTOCK_INSTANTIATE(double)
#undef PENSTOCK_INSTANTIATE

}  // namespace penstock::train::host
