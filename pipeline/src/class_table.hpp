#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// A class for each row, as a number from 0 on.
struct row_classes {
  std::vector<std::uint32_t> of_row;
  std::uint32_t classes = 0;
};

/// The rows of each class, in order. 8 bytes a row.
class class_table {
 public:
  explicit class_table(const row_classes& known);

  std::uint64_t classes() const noexcept { return starts_.size() - 1; }
  std::uint64_t rows(std::uint64_t one) const noexcept { return starts_[one + 1] - starts_[one]; }
  /// Row number `index` < rows(one) of a class.
  std::uint64_t place(std::uint64_t one, std::uint64_t index) const noexcept { return places_[starts_[one] + index]; }
  std::size_t bytes() const noexcept { return (starts_.size() + places_.size()) * sizeof(std::uint64_t); }
  /// The same of the table of such rows.
  static std::size_t bytes_for(const row_classes& known) noexcept {
    return (std::size_t{known.classes} + 1 + known.of_row.size()) * sizeof(std::uint64_t);
  }
  /// A number that tells tables apart.
  std::uint64_t fingerprint() const noexcept;

 private:
  std::vector<std::uint64_t> starts_;  ///< of each class in places_, and the end
  std::vector<std::uint64_t> places_;
};

}  // namespace penstock::pipeline
