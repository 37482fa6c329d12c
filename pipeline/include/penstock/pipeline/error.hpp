#pragma once

#include <penstock/error.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace penstock::pipeline {

/// What ended an epoch: one exception with the stage and the rows it was at. The cause, a user's own exception too, is
/// kept: std::rethrow_exception(e.cause()). what() names stage, rows, file and dataset, and holds the cause's sentence.
class error : public penstock::error {
 public:
  /// Positions [first, first + count) of the epoch: in the order of reading (order::reading_row) where a block is at
  /// work, in that of the batches (order::row) where its rows come out.
  struct place {
    std::string stage{};  ///< "read", "augment" (a transform's name), "copy", "consumer"
    std::uint64_t epoch = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::string rows{};  ///< for people: "rows 4096-4351, 128-383"
    /// Where a read failed; in other stages, where the first of the rows comes from, in the source's first field.
    std::string file{};
    std::string dataset{};
  };
  error(const std::string& sentence, place where, std::exception_ptr cause = nullptr)
      : penstock::error(sentence), where_(std::move(where)), cause_(std::move(cause)) {}
  const place& where() const noexcept { return where_; }
  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  place where_;
  std::exception_ptr cause_;
};

/// Work of a consumer's own that failed, as pipeline::failure() is told of it.
struct failed_work {
  enum class when : std::uint8_t {
    at,            ///< the batch named
    at_or_before,  ///< it, or one before it: a device tells of what failed there later
    before         ///< it was the next one
  };
  std::string stage = "consumer";  ///< error::place::stage
  std::string name{};              ///< in the sentence, as "training step 12"; empty: stage
  when at = when::at;
};

/// The run was stopped through its std::stop_token.
class stopped : public penstock::error {
 public:
  stopped() : penstock::error("stopped on request") {}
};

}  // namespace penstock::pipeline
