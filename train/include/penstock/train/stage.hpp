#pragma once

#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>
#include <penstock/train/loss.hpp>
#include <penstock/train/metrics.hpp>
#include <penstock/train/model.hpp>
#include <penstock/train/optimizer.hpp>
#include <penstock/train/progress.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train {

/// What happens to a step whose loss or input is not finite. Gradients are looked at where they are clipped, or are
/// fp16's; elsewhere an update that overflows by itself, as with an absurd learning rate, is made, and the next loss
/// shows it.
enum class non_finite : std::uint8_t {
  fail,  ///< no later step changes anything; progress() says which row it was
  skip   ///< the step changes nothing and is counted
};

/// The arithmetic of matrix products on float32 values; their sums, weights, gradients of weights, moments and losses
/// stay float32.
enum class precision : std::uint8_t {
  float32,  ///< factors as they are
  tf32,     ///< factors rounded to 10 bits of mantissa; needs a CUDA device of compute capability 8.0 (Ampere) or newer
  /// Activations, their gradients, and a copy of the weights that products take, are bfloat16. Needs a CUDA device of
  /// compute capability 8.0; the host gives the same to rounding, slowly.
  bf16,
  /// The same with float16, whose gradients are scaled: by 2^16 at first, half of it after a step that overflows, which
  /// changes nothing, and twice after 2,000 steps in a row that do not, up to 2^24. Needs compute capability 7.0.
  fp16
};
std::string_view name_of(precision) noexcept;
/// Throws std::invalid_argument with the names there are.
precision parse_precision(std::string_view name);

/// What waits in pinned memory while it is not worked on, instead of on the device. The bits stay the same; copies, on
/// streams of their own, take the link's time. On the host device, whose memory is all of one kind, it moves bytes from
/// one budget to the other.
struct offload_options {
  /// The optimizer's moments, which pass through a ring on the device at each update.
  bool optimizer = false;
  /// Inputs and outputs of layers that backward needs, all but the last three. With recompute_layers: those it keeps.
  bool activations = false;
  std::size_t ring_bytes = std::size_t{8} << 20;  ///< of the moments' ring, which is at most a quarter of the moments

  friend bool operator==(const offload_options&, const offload_options&) = default;
};

/// What the memory and the arithmetic of a stage depend on.
struct stage_options {
  mlp_options model{};
  loss_options loss = softmax_cross_entropy{};
  std::vector<double> class_weights{};  ///< for softmax cross-entropy, one for each class; empty: 1
  target targets = target::label;
  std::size_t top_k = 5;   ///< metrics::in_top_k: rows whose class is among so many largest outputs
  bool confusion = false;  ///< evaluate() counts targets against predictions, for up to most_confused classes
  optimizer_options optimizer = adamw{};
  std::size_t rows = 256;        ///< the most rows that accumulate() and evaluate() are given at once
  type compute = type::float32;  ///< float32 or float64: of x, weights, gradients and moments
  train::precision precision = precision::float32;
  /// Activation checkpointing: only every so many layers (dense, LayerNorm, activation, dropout) an output is kept for
  /// backward, which computes the others again, to the same bits. 0: all are kept. The square root of the layers needs
  /// the least memory.
  std::size_t recompute_layers = 0;
  offload_options offload{};
  double clip_norm = 0;    ///< a step's mean gradient is scaled down to this norm over all parameters; 0: never
  std::uint64_t seed = 0;  ///< of the initial weights, and of what dropout drops
  train::non_finite non_finite = non_finite::fail;
  std::size_t workspace_bytes = std::size_t{4} << 20;  ///< for matrix products on CUDA
  /// Host device: threads that compute, no more than the process has processors. 0: as many, up to
  /// most_default_threads. What each takes is in the plan.
  std::size_t threads = 0;
};

/// Each thread that computes on the host takes 4 MiB: where none are asked for, half of a default budget at most.
inline constexpr std::size_t most_default_threads = 64;

/// Classes that a confusion matrix is kept for.
inline constexpr std::size_t most_confused = 4096;

/// Rows for a stage, in the device's memory.
struct batch_rows {
  const void* x = nullptr;        ///< rows x inputs values of stage_options.compute
  const void* x2 = nullptr;       ///< the second input, alike, where the model has two
  const void* targets = nullptr;  ///< int32 or values, as stage_options.targets says
  /// What each row's loss counts, in stage_options.compute; null: 1. A row of weight 0 is masked: whatever its inputs
  /// and targets hold, NaN included, it contributes nothing.
  const void* weights = nullptr;
  std::size_t rows = 0;
  std::size_t valid_rows = 0;  ///< the rest are padding
  /// Numbers the rows: for progress, which names rows at fault, and for dropout, which drops by (seed, step, layer,
  /// row, column), so that rows of one step must have numbers of their own.
  std::uint64_t first_row = counted_on;
  /// From the valid rows on that accumulate() was given since the last update() or discard(); evaluate(): from 0 on.
  static constexpr std::uint64_t counted_on = ~std::uint64_t{0};
};

/// Of each input, over the rows of a data set.
struct input_statistics {
  std::vector<double> mean{};
  std::vector<double> deviation{};
};

/// A part of the state, in the device's memory or, offloaded, in pinned memory; for checkpoints.
struct state_item {
  std::string path;  ///< "/model/layer0/weight"
  type element = type::float32;
  std::vector<std::uint64_t> shape;
  std::byte* data = nullptr;
};

/// Memory that a stage takes. Throws std::invalid_argument, and gpu::error for a precision that the device lacks.
gpu::ledger plan(gpu::device d, const stage_options& options);

/// A model, its gradients and its optimizer in planned memory: what a training loop calls, yours or trainer's. Nothing
/// of the plan is allocated after the constructor, and on CUDA no call but those that say so waits for the device. What
/// is outside the plan there comes with the first call of each kind: the driver loads kernels, and keeps a recording of
/// the first pass of options().rows rows of each kind (step(), accumulate() at a step's beginning and later in it,
/// evaluate()); cuBLASLt describes the products, on the host, at the first pass of each other number of rows. Where a
/// pass cannot be recorded, as on a device that is full, its work is launched one by one, to the same bits. Not
/// thread-safe.
///
/// Gradients are exact for any split of a step into accumulate() calls: they are sums over rows, divided once in
/// update(); with dropout, as long as the rows keep their numbers. On one device the same calls give the same bits,
/// whatever the number of threads.
class stage {
 public:
  /// `memory` holds the items of plan(), and maybe others'. Initialises the weights from the seed; blocks until that is
  /// done.
  stage(gpu::stream_ref stream, const stage_options& options, std::shared_ptr<gpu::memory> memory);
  stage(stage&&) noexcept;
  stage& operator=(stage&&) noexcept;
  ~stage();

  /// Forward and backward: adds the gradients of the loss sum over the batch.
  void accumulate(const batch_rows& batch);
  /// The same for rows without weights.
  void accumulate(const void* x, const void* targets, std::size_t rows, std::size_t valid_rows,
                  std::uint64_t first_row = batch_rows::counted_on) {
    accumulate({.x = x, .targets = targets, .rows = rows, .valid_rows = valid_rows, .first_row = first_row});
  }
  /// One step of the optimizer with the accumulated gradients divided by the weight of the rows that they were summed
  /// over: their number, unless rows or classes have weights. Where it throws midway (offloaded moments pass piece by
  /// piece), train::error comes of every later use of the parameters, until all state is written anew.
  void update(double learning_rate);
  /// accumulate() and update() at once, to the same bits: a step of one batch, in fewer launches on CUDA.
  void step(const batch_rows& batch, double learning_rate);
  /// Forgets gradients accumulated since the last update(), and their metrics.
  void discard();
  /// What was accumulated since the last update() or discard(), with the sums in gradients(). Blocks.
  begun_step begun();
  /// Goes on with a step that has begun, to the bits of one that was never interrupted: the next accumulate() adds to
  /// the sums that gradients() hold, at the loss scale that they were made with. Sets the running metrics alone, so
  /// that it follows reset(), which sets those of the last update(), set_steps() and set_loss_scale(). Blocks.
  void go_on(const begun_step& step);
  /// Forward only: adds to the metrics.
  void evaluate(const batch_rows& batch);
  void evaluate(const void* x, const void* targets, std::size_t rows, std::size_t valid_rows,
                std::uint64_t first_row = batch_rows::counted_on) {
    evaluate({.x = x, .targets = targets, .rows = rows, .valid_rows = valid_rows, .first_row = first_row});
  }
  /// What evaluate() counted since the last reset(); empty unless options.confusion. Blocks.
  confusion_matrix confusion();
  /// Sets the metrics, as at an epoch's start, and forgets the confusion.
  void reset(const metrics& start = {});

  /// What was done so far; blocks until the stream is done.
  train::progress progress();
  /// The same without waiting: asks for it, and gives the last answer that has arrived. On CUDA it is some calls old.
  const train::progress& latest_progress();

  /// Adds rows to the statistics of the inputs: x and weights as for accumulate(). Masked rows are left out; so are
  /// values that are not finite, which are noted.
  void observe(const void* x, std::size_t rows, std::size_t valid_rows, std::uint64_t first_row = 0,
               const void* weights = nullptr);
  /// Mean and standard deviation (over all values, in float64) of what was observed; blocks.
  input_statistics observed();
  /// Forgets what was observed.
  void forget();

  /// Input x becomes (x - mean) * (1 / deviation); a deviation of 0 counts as 1. Blocks. The default changes nothing.
  void set_normalisation(const input_statistics& statistics);
  /// What was set last.
  const input_statistics& normalisation() const noexcept;

  /// Weights, biases and moments, in order.
  const std::vector<state_item>& state() const noexcept;
  /// Copies state to and from the host through planned pinned memory; both block. `bytes` is the item's size.
  void read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes);
  void write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes);
  /// The sums of gradients over the rows of a step that has begun, in order: "/gradients/layer0/weight". read_state()
  /// reads them.
  const std::vector<state_item>& gradients() const noexcept;
  /// Sets a part of them, as write_state() does. Blocks.
  void write_gradients(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes);
  /// Sets the number of steps made, which AdamW's correction depends on, and forgets rows that were at fault: comes
  /// last where all state is written. Blocks.
  void set_steps(std::uint64_t steps, std::uint64_t skipped = 0);
  /// Sets the loss scale of fp16, and the steps since it last changed. Blocks.
  void set_loss_scale(double scale, std::uint64_t clean_steps = 0);

  /// The algorithms of matrix products that the device's library has chosen so far, with the card and the library's
  /// version: a text for checkpoints. On the host OpenBLAS's version and its kernels for the processor.
  std::string algorithms() const;
  /// Takes these algorithms from now on. Gives why bits will differ from those of the run that they are of, as where
  /// the workspace is too small for some, in a sentence; empty where they will not. Blocks.
  std::string set_algorithms(const std::string& chosen);

  const stage_options& options() const noexcept;
  gpu::stream_ref stream() const noexcept;

  struct impl;

 private:
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::train
