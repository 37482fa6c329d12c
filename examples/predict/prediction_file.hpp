#pragma once

#include "rows_in_a_row.hpp"

#include <penstock/fault.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/trainer.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace examples {

/// The file of predictions: written as they come beside its name, and renamed when it is whole.
class prediction_file {
 public:
  /// `classes`: the values to come are a model's outputs, and classes are written: one for each row, or for each output
  /// where labels.decision is about each; they count from labels.first. Names of classes become the dataset's attribute
  /// "class_names", a JSON list. `faults`: for tests.
  prediction_file(const std::string& file, std::string dataset, std::uint64_t rows, std::size_t columns,
                  penstock::type element, bool classes, const penstock::train::class_labels& labels,
                  penstock::fault_seam faults = {});
  /// Rows [first_row, first_row + count) of `element`. Gives those of them that hold no prediction, in order: one of
  /// the values is NaN or infinite, or where classes are written, one of these cannot be told.
  std::vector<rows_in_a_row> write(std::uint64_t first_row, std::size_t count, std::span<const std::byte> values);
  /// Says that there are no predictions of these rows, which were written already: NaN, or class -1. False where a stop
  /// was asked for: it is looked at before each MiB.
  bool write_none(const rows_in_a_row& rows, const std::stop_token& stop = {});
  /// Sets the dataset's attributes "damaged_rows", "rows_not_finite" and "outputs_not_finite" to how many rows have no
  /// predictions because they are damaged, because they hold inputs that are not finite, or because what comes of their
  /// inputs is not, where there are any, and that of the file, "penstock_predictions", to `origin`; ends the file with
  /// a checksum of all its bytes (io::check_seal).
  void commit(const std::string& origin, std::uint64_t damaged_rows = 0, std::uint64_t rows_not_finite = 0,
              std::uint64_t outputs_not_finite = 0);

 private:
  template <class T>
  bool fill(T none, const rows_in_a_row& rows, std::size_t columns, const std::stop_token& stop);
  template <class T>
  void choose(std::size_t count, const T* values);

  penstock::io::writer writer_;
  std::string dataset_;
  std::size_t columns_;
  penstock::type element_;
  bool classes_;
  penstock::train::decision decision_;
  std::size_t class_columns_;  // classes of a row
  std::int32_t first_class_;
  std::vector<std::int32_t> chosen_;
};

}  // namespace examples
