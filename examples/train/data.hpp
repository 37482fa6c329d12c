#pragma once

#include "options.hpp"

#include <penstock/io/location.hpp>
#include <penstock/pipeline/description.hpp>

#include <optional>
#include <vector>

namespace examples {

/// Inputs and labels, row by row.
struct labelled_rows {
  std::vector<penstock::io::location> x;
  std::vector<penstock::io::location> y;
};

/// The datasets to train on, and to test on where there are some.
struct training_data {
  labelled_rows training;
  std::optional<labelled_rows> testing;
  std::size_t outputs = 0;  ///< classes, or values of a row of y
};

/// Finds the datasets that the options name, or the ones that penstock-make-dataset writes, and counts the classes with
/// one pass over the labels, where the loss is one of classes. Throws io::error, std::invalid_argument.
training_data find_data(const train_options& o);

/// The order of the options with a pool that suits small budgets, unless they name one: four runs of rows that are
/// stored together, two megabytes at least. A function of the files alone, so that the order is too.
penstock::pipeline::shuffled order_of(const labelled_rows& rows, const train_options& o);

/// Rows in shuffled order, as batches of float32 inputs and int32 labels, padded to full size.
penstock::pipeline::opened open_rows(const labelled_rows& rows, std::size_t batch_rows, const train_options& o);

}  // namespace examples
