#pragma once

#include <penstock/gpu/permutation.hpp>
#include <penstock/pipeline/order.hpp>

#include <cstdint>

namespace penstock::pipeline {

/// How the rows of a sequence are dealt to shards, and which of them a process serves.
///
/// Runs are dealt in turn: turn t goes to shard t modulo `shards`. What is left for a last round that not every shard
/// gets a run of is dealt by rows, in equal pieces: shards differ by a row at most. The pieces begin where they lie or,
/// going round, at another row. Rank r of R serves the shards r,
/// r + R, r + 2R and so on, and takes a row from each of them in turn. So row p of a rank is row r + p * R when all
/// shards are dealt out in turn, one row each: whatever R is, the ranks' rows number [t * B, (t + 1) * B) are the same
/// rows for the same R * B.
class dealing {
 public:
  dealing() = default;
  /// Throws std::invalid_argument for ranks that do not suit the shards.
  dealing(const shard_options& how, std::uint64_t rows, std::uint64_t run_rows);

  std::uint64_t shards() const noexcept { return shards_; }
  std::uint64_t rank() const noexcept { return rank_; }
  std::uint64_t ranks() const noexcept { return ranks_; }
  /// Shards that this process serves.
  std::uint64_t lanes() const noexcept { return shards_ / ranks_; }
  /// Rows of this process.
  std::uint64_t rows() const noexcept { return rank_ < rows_ ? (rows_ - rank_ - 1) / ranks_ + 1 : 0; }
  std::uint64_t most_rows() const noexcept { return (rows_ + ranks_ - 1) / ranks_; }
  std::uint64_t least_rows() const noexcept { return rows_ / ranks_; }

  struct stretch {
    std::uint64_t first = 0;  ///< position in the sequence
    std::uint64_t rows = 0;   ///< that follow each other in it
  };
  /// Row number `row` of a lane, where the lane's next ones follow it. `rest_from`: at which of the rows that are left,
  /// modulo their number, the first piece of them begins.
  stretch at(std::uint64_t lane, std::uint64_t row, std::uint64_t rest_from = 0) const noexcept;
  /// Runs that every shard gets.
  std::uint64_t rounds() const noexcept { return rows_ / run_rows_ / shards_; }

 private:
  std::uint64_t shards_ = 1, rank_ = 0, ranks_ = 1;
  std::uint64_t rows_ = 0;
  std::uint64_t run_rows_ = 1;
};

}  // namespace penstock::pipeline
