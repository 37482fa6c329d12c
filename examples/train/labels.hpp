#pragma once

#include <penstock/io/location.hpp>
#include <penstock/pipeline/description.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// How a dataset of labels is stored.
enum class label_kind : std::uint8_t {
  numbers,  ///< also an enumeration's, whose members follow each other from the first class on
  members,  ///< any other enumeration's: each member is a class, in the order of their values
  codes,    ///< texts of variable length, which io gives as numbers: places in the sorted list of those it met
  texts     ///< of a fixed length, which io gives as bytes
};

/// What a pass over labels has found.
struct label_summary {
  label_kind kind = label_kind::numbers;
  /// The different texts of rows that are not masked, sorted; an enumeration's members, in the order of their values;
  /// empty for other numbers.
  std::vector<std::string> names{};
  std::vector<std::int64_t> values{};  ///< of the members, which rise
  std::vector<std::string> stored{};   ///< what codes stand for, those of masked rows too
  std::vector<std::uint64_t>
      counts{};                      ///< rows of each class that are to be counted, from 0 up to the largest there is
  std::uint64_t row_of_largest = 0;  ///< of numbers: the first that has the largest label
  std::size_t mask_bytes = 0;        ///< host memory that the pass took for which rows count: a bit for each
};

/// Labels as they are stored, and the rows that count.
struct label_source {
  const std::vector<penstock::io::location>& labels;
  const std::vector<penstock::io::location>&
      weights;    ///< may be empty; a row of weight 0 is masked, whatever its label
  int first = 0;  ///< the number of the first class
  double most_classes = 0;
  std::uint64_t damaged_rows = 0;  ///< about so many may be damaged in the file; they do not count
  std::vector<bool> counted{};     ///< which of the rows that are looked at are counted; empty: all
};

/// One pass over all labels. Throws io::error with the place of a label that is no whole number from `first` up to the
/// last class, or no member of its enumeration, where there are several numbers in a row, and where files have
/// different enumerations.
label_summary scan_labels(const label_source& from);

/// A transform that makes field "label" of a set's texts or members: the place of each among the names of the training
/// set, and any number in masked rows. Nothing where the stored values are that already. Throws std::invalid_argument
/// that names a text which is not among them, or stands for another number, and where one set has texts and the other
/// numbers.
std::optional<penstock::pipeline::host_transform> numbered(const label_summary& labels, const label_summary& training,
                                                           const penstock::io::location& first);

}  // namespace examples
