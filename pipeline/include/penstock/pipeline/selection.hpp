#pragma once

#include <penstock/io/location.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace penstock::pipeline {

/// Consecutive rows of the source.
struct extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  friend bool operator==(const extent&, const extent&) = default;
};

/// How rows are divided into a training and a validation part: each row, or each group of rows with the same value of
/// a field, falls into the validation part with this probability. Which part a row is in depends on the seed and its
/// number (or its group's value) alone: parts stay as they are when rows are added.
struct split {
  double validation = 0.1;  ///< from 0 to 1
  std::uint64_t seed = 0;
  /// A field of the source: rows with the same values in it are never in both parts, also of several sources and files
  /// that are split alike. Values are the same where their bytes are, and of floats 0 and -0, and all that are not
  /// numbers; texts where they read the same, of fixed length or not, whichever other texts there are. Empty: rows by
  /// themselves.
  std::string group{};
};

/// Which rows of a source take part, each once and in the order of their numbers. A description: fields are looked at
/// when the source is opened. Costs one bit of host memory for each row of the source, which is in the plan.
class selection {
 public:
  /// Rows of these ranges; they may overlap.
  explicit selection(std::vector<extent> ranges);
  /// Rows with these numbers; in any order, counted once. `of_rows`: how many rows the source has to have, where the
  /// numbers come of a mask that tells of each.
  explicit selection(std::vector<std::uint64_t> rows, std::optional<std::uint64_t> of_rows = std::nullopt);

  struct ranges_of_rows {
    std::vector<extent> ranges;
    std::optional<std::uint64_t> of_rows = std::nullopt;
  };
  struct rows_that {
    std::string field;
    std::function<bool(double)> keep;
  };
  struct part_of {
    split how;
    bool validation;
  };
  using criterion = std::variant<ranges_of_rows, rows_that, part_of>;
  /// A row takes part where all of these hold.
  const std::vector<criterion>& criteria() const noexcept { return criteria_; }

  /// Rows that are in both.
  friend selection operator&(selection a, const selection& b);

 private:
  friend selection where(std::string field, std::function<bool(double)> keep);
  friend selection training_part(split how);
  friend selection validation_part(split how);
  explicit selection(criterion one) { criteria_.push_back(std::move(one)); }

  std::vector<criterion> criteria_;
};

/// Rows for which `keep` holds of the value of `field`, a field of the source with one number in each row, as it is
/// read (unpacked where field_options::netcdf says so, before scale and shift), as float64. `keep` is called once for
/// each row, in order, on the thread that opens the source. Throws std::invalid_argument where it is empty.
selection where(std::string field, std::function<bool(double)> keep);
/// The two parts of a split: every row is in one of them. Throw std::invalid_argument for a probability that is none.
selection training_part(split how);
selection validation_part(split how);

}  // namespace penstock::pipeline
