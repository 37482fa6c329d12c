#pragma once

#include <penstock/gpu/permutation.hpp>
#include <penstock/pipeline/order_options.hpp>
#include <penstock/pipeline/selection.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::pipeline {

class row_set;       // private: the rows that take part
class row_sequence;  // private: the rows of an epoch before they are dealt
class dealing;       // private: who gets which
struct row_supply;   // private: all that an order needs of its source

/// The order of rows: a pure function of (source, options, epoch, position), computed and not stored.
///
/// There are two sequences. Reading goes through the rows in reading order: position s is row reading_row(epoch, s).
/// Windows of window_rows() positions are then drawn from: position p of the epoch is reading position
/// w * window_rows() + draw(epoch, w)(p - w * window_rows()), w = p / window_rows(). Without a pool both are the same.
/// Where only some rows take part, positions count these, and so do runs and pool. A process that serves several shards
/// takes a row from each in turn; its windows hold one of each shard.
class order {
 public:
  /// `only`: the rows that take part; null: all. Throws std::invalid_argument where options contradict the source (pool
  /// smaller than a run) or each other (no such rank; so long runs that an epoch of a mix has fewer than sources).
  order(const order_options& options, source_shape shape, std::shared_ptr<const row_set> only = nullptr,
        shard_options share = {});
  order(const order_options& options, source_shape shape, const row_supply& supply, shard_options share);

  /// Rows of an epoch, in this process.
  std::uint64_t rows() const noexcept;
  /// Rows of the processes that have most and least: they differ by one at most.
  std::uint64_t most_rows() const noexcept;
  std::uint64_t least_rows() const noexcept;
  std::uint64_t shards() const noexcept;
  std::uint64_t ranks() const noexcept;
  /// Rows of an epoch in all processes together.
  std::uint64_t rows_of_all() const noexcept;
  /// Rows may come more than once in an epoch, and others not at all.
  bool repeats() const noexcept;
  /// Rows are drawn from windows.
  bool is_pooled() const noexcept { return pooled_; }
  std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t run_rows() const noexcept { return run_rows_; }
  /// Rows of a window; rows() where there is no pool. The last window may be shorter.
  std::uint64_t window_rows() const noexcept { return window_rows_; }

  // Positions from rows() on are not in an epoch: where one is asked for, these throw std::invalid_argument.
  /// Appends the extents of the reading positions [first, first + count), neighbours joined.
  void read(std::uint64_t epoch, std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const;
  /// The row at `position` of the epoch.
  std::uint64_t row(std::uint64_t epoch, std::uint64_t position) const;
  /// The row at a reading position.
  std::uint64_t reading_row(std::uint64_t epoch, std::uint64_t position) const;
  /// The draw of one window, which begins before rows().
  gpu::permutation draw(std::uint64_t epoch, std::uint64_t window) const noexcept;

  /// A number that tells apart sets of rows that take part; 0 where all do.
  std::uint64_t rows_fingerprint() const noexcept;
  /// A number that tells apart what rows are drawn by (weights, classes); 0 where nothing but the options is.
  std::uint64_t draws_fingerprint() const noexcept;
  /// For people: "shuffled: seed 42, runs of 256 rows, pool of 16384 rows". The same for all processes.
  std::string description() const;

 private:
  void take_pool(std::uint64_t wanted, bool is_asked_for);
  void check_positions(std::uint64_t first, std::uint64_t count) const;
  extent stretch_at(std::uint64_t epoch, std::uint64_t position) const noexcept;

  std::shared_ptr<const row_set> only_;
  std::shared_ptr<const row_sequence> sequence_;
  std::shared_ptr<const dealing> dealt_;
  std::uint64_t source_rows_ = 0;
  std::uint64_t chosen_rows_ = 0;  ///< that take part
  std::uint64_t seed_ = 0;
  std::uint64_t run_rows_ = 0;
  std::uint64_t pool_rows_ = 0;  ///< of one shard
  std::uint64_t window_rows_ = 0;
  bool permuted_ = false;  ///< runs are read in an order of their own
  bool pooled_ = false;
  bool rest_is_turned_ = false;  ///< what is left for no full round is dealt from a row on that each epoch draws
};

}  // namespace penstock::pipeline
