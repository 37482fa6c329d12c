#pragma once

#include "../backend.hpp"

namespace penstock::train::host {

// Row-wise work and column sums on fixed tiles: the same bits whatever the number of threads. Call inside the arena.

template <class S>
void take(const intake<S>& what);

template <class T>
void observe(const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments, step_state& state);

template <class T>
void add_scores(const row_score<T>* scores, bool gradient, step_state& state);

template <class S, class T>
void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy, T* bias_gradient,
                         bool accumulate);

template <class T>
void square_gradients(std::size_t count, const T* gradients, double* piece_sums, step_state& state);

}  // namespace penstock::train::host
