#pragma once

#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>
#include <penstock/pipeline/pipeline.hpp>
#include <penstock/train/stage.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace penstock::train {

class pass_errors;  // private: where a pass over batches failed

/// What a predictor gives for each output of the model.
enum class prediction : std::uint8_t {
  output,  ///< as the last layer gives it: logits, or values
  softmax,
  sigmoid
};

struct predictor_options {
  mlp_options model{};
  prediction form = prediction::output;
  std::size_t rows = 256;        ///< the most rows that predict() is given at once
  type compute = type::float32;  ///< float32 or float64: of x, weights and predictions
  train::precision precision = precision::float32;
  std::size_t workspace_bytes = std::size_t{4} << 20;  ///< for matrix products on CUDA
  std::size_t threads = 0;                             ///< host device: see stage_options::threads
};

/// The model of a checkpoint, in its compute type, with the form that suits its loss: probabilities of classes, or
/// values. Throws io::error, train::error for what is no checkpoint.
predictor_options options_of(const std::filesystem::path& checkpoint);

/// Memory that a predictor takes: weights, one block of inputs, and two blocks of the widest layers, whatever the
/// number of layers. Throws like that of a stage.
gpu::ledger plan(gpu::device d, const predictor_options& options);

/// A model that only goes forward, in planned memory: it allocates no device or pinned memory of its own. On CUDA the
/// first call for each number of rows has cuBLASLt describe its products, on the host, and the first one for
/// options.rows records the launches, of which the driver keeps a copy. Its outputs are those of stage::evaluate() with
/// the same weights. Not thread-safe.
class predictor {
 public:
  /// Takes a row, by its position in the epoch, of which there is no prediction.
  using row_sink = std::function<void(std::uint64_t row)>;
  /// Predictions of rows [first_row, first_row + rows) of an epoch: rows x outputs values of options.compute.
  using sink = std::function<void(std::uint64_t first_row, std::size_t rows, std::span<const std::byte> values)>;

  /// `memory` holds the items of plan(), and maybe others'.
  predictor(gpu::stream_ref stream, const predictor_options& options, std::shared_ptr<gpu::memory> memory);
  predictor(predictor&&) noexcept;
  predictor& operator=(predictor&&) noexcept;
  ~predictor();

  /// Takes weights and statistics of the inputs from a checkpoint, and gives the checksum of what was read: that which
  /// the file has as its attribute "penstock_checksum", unless another took its place since. Blocks. Throws io::error,
  /// and train::error where it is of another model, or damaged: the weights are those of before then. Where it throws
  /// midway (the device fails, or the file changes while it is read), predict() throws train::error until a checkpoint
  /// was loaded.
  std::string load(const std::filesystem::path& checkpoint);

  /// The predictions of `rows` rows of x, both in the device's memory, in stream order; the next call writes over them.
  /// Does not block. `first_row` numbers the rows for bad_input().
  /// `x2`: the second input, where the model has two.
  const void* predict(const void* x, std::size_t rows, std::uint64_t first_row = 0, const void* x2 = nullptr);
  /// The first row with an input that was not finite, since the last pipeline's first one, or progress::no_row. Blocks.
  std::uint64_t bad_input();

  /// Streams the first epoch of a pipeline through the model, field `x` (and `x2`, where it has two inputs), and hands
  /// the predictions to `to` in order, on the caller's thread, while the next batch is computed. Throws
  /// pipeline::stopped on request, and after the last row train::error where an input was not finite.
  /// `not_finite`: takes each such row in order instead, on the caller's thread, before or after `to` has taken its
  /// prediction, which says nothing. The device is waited for after each batch then, and looks once more at the
  /// inputs of a batch with such rows, however many.
  /// What fails on the device is told as pipeline::error, as by trainer: its stage is "prediction", and the rows are
  /// those of the batch at work. What `to` and `not_finite` throw passes as it is.
  void predict(pipeline::pipeline& from, const std::string& x, const sink& to, std::stop_token stop = {},
               const std::string& x2 = {}, const row_sink& not_finite = {});

  const predictor_options& options() const noexcept;

  struct impl;

 private:
  struct rows_at {
    const void* x;
    const void* x2;
    std::size_t rows;
    std::uint64_t first_row;
  };
  struct input_fields {
    const std::string& x;
    const std::string& x2;
  };
  void predict_all(pipeline::pipeline& from, const input_fields& fields, const sink& to, std::stop_token stop,
                   const row_sink& not_finite, pass_errors& failing);
  void name_rows(const rows_at& block, const row_sink& not_finite);

  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::train
