#pragma once

#include "../common/input_files.hpp"
#include "options.hpp"

#include <penstock/gpu/device.hpp>
#include <penstock/io/location.hpp>
#include <penstock/pipeline/pipeline.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace examples {

/// Inputs and labels, row by row.
struct labelled_rows {
  std::vector<penstock::io::location> x, y;
  /// The class of each of the numbers that the pipeline makes of labels which are texts; empty where they are the
  /// classes.
  std::vector<std::int64_t> classes{};
};

struct libtorch_data {
  labelled_rows training;
  std::optional<labelled_rows> testing;
  std::vector<std::uint64_t> row_shape;  ///< of an input
  double scale = 1;                      ///< of the inputs
  std::uint64_t classes = 0;

  /// Finds what the options name, and looks at every label, since a CUDA kernel that meets one outside the classes
  /// takes the program down. Texts name classes: those of the training set, sorted. Throws
  /// std::invalid_argument, io::error, std::runtime_error (naming file, dataset and row of a label that is none).
  explicit libtorch_data(const libtorch_options& o);
  /// What the rows are read from.
  input_files inputs() const;
};

/// Batches with "x" as float32, scaled, and "y" as int64, as torch's cross-entropy takes them; shuffled for training,
/// as they lie for testing. Throws std::runtime_error with the itemised list and the options that set the budget, where
/// it does not do.
penstock::pipeline::pipeline open_batches(const labelled_rows& rows, bool training, const libtorch_data& data,
                                          const libtorch_options& o, penstock::gpu::device device);

}  // namespace examples
