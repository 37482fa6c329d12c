#pragma once

#include "element.hpp"
#include "row_loss.hpp"
#include "step_state.hpp"

#include <penstock/gpu/stream.hpp>
#include <penstock/train/model.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace penstock::train {

/// c = a b, all row-major and dense: c is rows x columns, a is rows x depth and b depth x columns after the
/// transpositions.
struct product {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  ///< c += a b
  bool bias = false;        ///< a bias is added to each row of c, and the activation applied
  bool gradient = false;    ///< c is a gradient, in the arithmetic type
  bool sums = false;        ///< of a gradient that sets c: the sums over the depth of a's values are made too
  train::activation activation = activation::identity;

  friend auto operator<=>(const product&, const product&) = default;
};

/// For each column, in the device's memory: values seen, their mean, and the sum of squared distances from it.
struct moment_columns {
  double* counts = nullptr;
  double* means = nullptr;
  double* squares = nullptr;
};

/// The rows of a pass, as they are given to it.
template <class T>
struct taken_rows {
  row_block block;
  const T* x = nullptr;
  const T* x2 = nullptr;  ///< the second input's; null: there is one
  const void* targets = nullptr;
  const T* weights = nullptr;  ///< null: all 1
  double learning_rate = 0;    ///< of the update that follows, where it is known
};

/// What a pass begins with: rows, and where they go.
template <class S>
struct intake {
  using T = arithmetic<S>;

  taken_rows<T> rows;
  std::size_t columns = 0;
  const T* mean = nullptr;
  const T* scale = nullptr;
  S* out = nullptr;
  step_state* state = nullptr;
};

/// The operations that are a pair: matrix products, reductions and row-wise work, on the host and on CUDA. All are in
/// stream order, do not block, allocate nothing after the first call of each shape, and give the same bits every time.
/// Activations are of type S; weights, gradients and sums are in its arithmetic.
template <class S>
class backend {
 public:
  using T = arithmetic<S>;

  virtual ~backend() = default;

  /// Runs `work`, which calls the functions below, where it belongs (the host's own threads).
  virtual void run(const std::function<void()>& work) = 0;

  /// Runs take(first) and then `work` like run(), where `work` is the same at every call with `key`: on CUDA both are
  /// recorded once as a graph whose first node is given `first` anew each time. What else changes from call to call,
  /// `work` must read from the device's memory. Where it returns, all was asked for, recorded or not, also if `work`
  /// has thrown while it was recorded.
  virtual void replay(std::size_t key, const intake<S>& first, const std::function<void()>& work) = 0;

  virtual void multiply(const product& what, const S* a, const S* b, S* c, const S* bias) = 0;
  /// For `what.gradient`: without bias and activation. `sums`: what.rows values where what.sums. May run beside what
  /// follows, up to join(): until then a, b and c stay as they are.
  virtual void multiply_gradient(const product& what, const S* a, const S* b, T* c, T* sums) = 0;
  /// Whether multiply_gradient() makes the sums of such a product.
  virtual bool makes_sums(const product&, const S*, const S*, T*, T*) { return false; }

  /// Begins a pass: notes block, targets, weights and learning rate in the state, and gives out = (x - mean) * scale by
  /// column, the second input's rows behind the first one's. Padding and masked rows become 0; the first other row with
  /// a value that is not finite is noted.
  virtual void take(const intake<S>& what) = 0;

  /// Merges the rows' values into running counts, means and sums of squared distances from the mean, column by column
  /// (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Masked
  /// rows are left out; so are values that are not finite, and the first row that holds one is noted.
  virtual void observe(const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments,
                       step_state* state) = 0;

  /// dy *= derivative of the activation, computed from its output y; bias_gradient, unless null, (+)= the sums of dy's
  /// columns.
  virtual void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy,
                                   T* bias_gradient, bool accumulate) = 0;

  /// Adds the scores of the rows that were taken to the state's running metrics, and where `gradient` their weight to
  /// the step's. May run beside what follows, up to join().
  virtual void add_scores(const row_score<T>* scores, bool gradient, step_state* state) = 0;

  /// What may run beside what was asked for after it is done before what is asked for next.
  virtual void join() = 0;

  /// The algorithms that a library chose for products so far, as a text for checkpoints: in its first line the card or
  /// processor, and the library's version.
  virtual std::string algorithms() const { return {}; }
  /// From now on products have these algorithms. Gives why they do not, in a sentence; empty where they do.
  virtual std::string set_algorithms(const std::string& chosen) = 0;

  /// The sum of squares of the gradients to the state, over norm_pieces pieces in a fixed order.
  virtual void square_gradients(std::size_t count, const T* gradients, double* piece_sums, step_state* state) = 0;

  /// Settles whether the step counts, and what the optimizer multiplies with. `beside`: may run beside what follows, up
  /// to join().
  virtual void begin_update(const update_rule& rule, step_state* state, bool beside) = 0;
  /// The rows accumulated so far are forgotten; metrics go back to the last update.
  virtual void discard(step_state* state) = 0;
  /// Sets the running metrics. `forgive`: values that were not finite no longer block the next update.
  virtual void reset(const metrics& start, bool forgive, step_state* state) = 0;
};

/// Scratch that a backend needs for models of these widths, in elements.
std::size_t column_sum_elements(gpu::device d, std::size_t rows, std::size_t widest);

/// Pieces that the gradient's norm is summed in.
inline constexpr std::size_t norm_pieces = 256;
/// Graphs that replay() can keep.
inline constexpr std::size_t replay_keys = 4;

struct backend_memory {
  std::span<std::byte> workspace;    ///< for matrix products
  std::span<std::byte> column_sums;  ///< column_sum_elements()
};

template <class S>
std::unique_ptr<backend<S>> make_backend(gpu::stream_ref stream, const stage_options& options,
                                         const backend_memory& memory);

}  // namespace penstock::train
