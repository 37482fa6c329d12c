#pragma once

#include "../backend.hpp"

#include <cuda_runtime_api.h>

namespace penstock::train::cuda {

// Launches of kernels, on the current device in stream order. No floating-point atomics: sums have a fixed order, so
// that the same input gives the same bits.

/// The kernel that begins a pass, with its argument: launched by itself, or a node of a graph.
template <class S>
class take_launch {
 public:
  explicit take_launch(const intake<S>& what) noexcept : what_(what) {}
  take_launch(const take_launch&) = delete;
  take_launch& operator=(const take_launch&) = delete;

  /// Points into this object.
  cudaKernelNodeParams params() noexcept;

 private:
  using T = arithmetic<S>;
  bool is_wide(std::size_t width) const noexcept;

  intake<S> what_;
  void* argument_ = &what_;
};

template <class T>
void observe(cudaStream_t stream, const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments,
             step_state* state);

template <class T>
void add_scores(cudaStream_t stream, const row_score<T>* scores, bool gradient, step_state* state);

/// `partial` holds column_sum_elements() values; none are needed for up to column_sum_rows_at_once rows.
template <class S, class T>
void activation_gradient(cudaStream_t stream, activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy,
                         T* bias_gradient, bool accumulate, T* partial);

template <class T>
void square_gradients(cudaStream_t stream, std::size_t count, const T* gradients, double* piece_sums,
                      step_state* state);

void begin_update(cudaStream_t stream, const update_rule& rule, step_state* state);
void discard(cudaStream_t stream, step_state* state);
void reset(cudaStream_t stream, const metrics& start, bool forgive, step_state* state);

}  // namespace penstock::train::cuda
