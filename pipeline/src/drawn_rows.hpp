#pragma once

#include "class_table.hpp"
#include "row_sequence.hpp"
#include "weight_table.hpp"

#include <memory>

namespace penstock::pipeline {

/// Rows drawn by weight, each draw by itself.
class weighted_rows final : public row_sequence {
 public:
  weighted_rows(std::shared_ptr<const weight_table> weights, std::uint64_t seed, std::uint64_t rows) noexcept
      : weights_(std::move(weights)), seed_(seed), rows_(rows) {}

  stretch at(std::uint64_t epoch, std::uint64_t position) const noexcept override;
  std::uint64_t rows() const noexcept override { return rows_; }
  bool repeats() const noexcept override { return true; }
  std::uint64_t fingerprint() const noexcept override { return weights_->fingerprint(); }
  std::string description() const override;

 private:
  std::shared_ptr<const weight_table> weights_;
  std::uint64_t seed_;
  std::uint64_t rows_;
};

/// Rounds in which every class comes once. Round n takes row n, modulo the class's rows, of each class's own order,
/// which is another one in each pass through the class.
class balanced_rows final : public row_sequence {
 public:
  balanced_rows(std::shared_ptr<const class_table> classes, std::uint64_t seed, std::uint64_t rows) noexcept
      : classes_(std::move(classes)), seed_(seed), rows_(rows) {}

  stretch at(std::uint64_t epoch, std::uint64_t position) const noexcept override;
  std::uint64_t rows() const noexcept override { return rows_; }
  bool repeats() const noexcept override { return true; }
  std::uint64_t fingerprint() const noexcept override { return classes_->fingerprint(); }
  std::string description() const override;

 private:
  std::shared_ptr<const class_table> classes_;
  std::uint64_t seed_;
  std::uint64_t rows_;
};

}  // namespace penstock::pipeline
