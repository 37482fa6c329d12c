#pragma once

#include "row_sequence.hpp"

namespace penstock::pipeline {

/// Every row once: as rows lie, or by permuted runs. Where the last run is short, it comes last, or is put in at a
/// drawn place.
class each_once final : public row_sequence {
 public:
  enum class last_run : bool { comes_last, is_put_in };
  /// Rows as they lie.
  explicit each_once(std::uint64_t rows) noexcept : rows_(rows), run_rows_(1) {}
  /// Runs of `run_rows` > 0 in an order of their own.
  each_once(std::uint64_t rows, std::uint64_t run_rows, std::uint64_t seed, last_run last) noexcept
      : rows_(rows), run_rows_(run_rows), seed_(seed), permuted_(true), last_(last) {}

  stretch at(std::uint64_t epoch, std::uint64_t position) const noexcept override;
  std::uint64_t rows() const noexcept override { return rows_; }

 private:
  std::uint64_t rows_;
  std::uint64_t run_rows_;
  std::uint64_t seed_ = 0;
  bool permuted_ = false;
  last_run last_ = last_run::comes_last;
};

}  // namespace penstock::pipeline
