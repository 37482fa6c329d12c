#pragma once

#include "../backend.hpp"

namespace penstock::train::host {

// Row-wise work and column sums on fixed tiles: the same bits whatever the number of threads. Call inside the arena.

template <class T>
void normalise(const row_block& block, std::size_t columns, const T* x, const T* mean, const T* scale, T* out,
               step_state& state);

template <class T>
void observe(const row_block& block, std::size_t columns, const T* x, const moment_columns& moments, step_state& state);

template <class T>
void softmax_cross_entropy(const row_block& block, std::size_t classes, T* logits, const std::int32_t* labels,
                           T* row_losses, bool gradient, step_state& state);

template <class T>
void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const T* y, T* dy, T* bias_gradient,
                         bool accumulate);

}  // namespace penstock::train::host
