#pragma once

#include "../common/input_files.hpp"
#include "labels.hpp"
#include "options.hpp"

#include <penstock/io/location.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/pipeline/selection.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// Inputs and targets, row by row.
struct labelled_rows {
  std::vector<penstock::io::location> x{};
  std::vector<penstock::io::location> x2{};  ///< second inputs; empty: there are none
  std::vector<penstock::io::location> y{};
  std::vector<penstock::io::location> weights{};  ///< of the rows; empty: all 1
  std::vector<penstock::io::location> group{};    ///< what the split keeps together; empty: rows by themselves
  std::optional<penstock::pipeline::selection> only{};
  label_summary labels{};  ///< where there are classes
};

/// The datasets to train on, and to evaluate on where there are some.
struct training_data {
  labelled_rows training{};
  std::optional<labelled_rows> testing{};
  std::string testing_name = "test";  ///< "validation" where it is split off
  std::size_t outputs = 0;            ///< of the model: classes, or values of a row of y
  penstock::train::target targets = penstock::train::target::label;
  std::vector<double> class_weights{};
  std::string warning{};  ///< a sentence on what looks like a mistake; empty: nothing does
};

/// Finds the datasets that the options name, or the ones that penstock-make-dataset writes, and looks at every label
/// with one pass over them. Throws io::error, std::invalid_argument.
training_data find_data(const train_options& o);

/// What the data are read from.
input_files inputs_of(const training_data& data);

/// The order of the options with a pool that suits small budgets, unless they name one: four runs of rows that are
/// stored together, two megabytes at least. A function of the files alone, so that the order is too.
penstock::pipeline::shuffled order_of(const training_data& data, const train_options& o);

/// Whether rows of a set have weights.
bool have_weights(const training_data& data);

/// Whether rows that are damaged in their files are left out. Their mask is the rows' weights then.
bool skips_damaged(const train_options& o);

/// Rows in shuffled order, as batches of float32 inputs and targets of the stage's type, padded to full size. The
/// training rows are traced where the options say so.
penstock::pipeline::description describe_rows(const labelled_rows& rows, const training_data& data,
                                              std::size_t batch_rows, const train_options& o);
/// The same, opened.
penstock::pipeline::opened open_rows(const labelled_rows& rows, const training_data& data, std::size_t batch_rows,
                                     const train_options& o);

}  // namespace examples
