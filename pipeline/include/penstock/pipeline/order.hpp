#pragma once

#include <penstock/gpu/permutation.hpp>
#include <penstock/pipeline/selection.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace penstock::pipeline {

/// Rows as they lie in the source.
struct sequential {};

/// Rows shuffled by runs and pool: the runs (run_rows consecutive rows) are permuted, and within each window of
/// pool_rows rows of that sequence every row is drawn in an order of its own. Another epoch, another order; the same
/// seed and epoch, the same order, whatever budgets, threads and blocks.
struct shuffled {
  std::uint64_t seed = 0;
  std::uint64_t run_rows = 0;   ///< 0: the default, computed from the source alone (order_defaults)
  std::uint64_t pool_rows = 0;  ///< 0: the default; at least run_rows, at most the source's rows
};

/// Rows in an order drawn from all orders, every row by itself. Mixes best, and reads worst: each row is a read of its
/// own, and where rows lie in compressed chunks, each costs its whole chunk.
struct random {
  std::uint64_t seed = 0;
};

using order_options = std::variant<sequential, shuffled, random>;

/// An order that several processes share: its runs are dealt to so many shards, in turn, and each shard has a pool of
/// its own. The shards of an epoch hold every row once. How many shards there are is part of the order; who serves
/// which is not.
struct shard_options {
  std::uint64_t shards = 1;
  std::uint64_t shard = 0;  ///< this process's
};

/// What an order's defaults are computed from.
struct source_shape {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;   ///< stored bytes of a row, over all fields
  std::uint64_t chunk_rows = 1;  ///< the largest chunk extent along the rows, over all fields
};

/// The defaults of a shuffled order (its seed is 0): runs of what storage keeps together (whole chunks, at least 64 KiB
/// and at most 4 MiB), a pool of 32 runs, at most 128 MiB.
shuffled order_defaults(const source_shape& shape);

class row_set;  // private: the rows that take part

/// The order of rows: a pure function of (source shape, options, epoch, position), computed and not stored.
///
/// There are two sequences. Reading goes through the rows in reading order: position s is row reading_row(epoch, s).
/// Windows of window_rows() positions are then drawn from: position p of the epoch is reading position
/// w * window_rows() + draw(epoch, w)(p - w * window_rows()), w = p / window_rows(). Without a pool both are the same.
/// Where only some rows take part, positions count these, and so do runs and pool.
class order {
 public:
  /// `only`: the rows that take part; null: all. Throws std::invalid_argument where options contradict the source (pool
  /// smaller than a run) or each other (no such shard).
  order(const order_options& options, source_shape shape, std::shared_ptr<const row_set> only = nullptr,
        shard_options share = {});

  /// Rows of an epoch, in this shard.
  std::uint64_t rows() const noexcept { return rows_; }
  /// Rows of the shards that have most and least: they differ by a run at most.
  std::uint64_t most_rows() const noexcept;
  std::uint64_t least_rows() const noexcept;
  std::uint64_t shards() const noexcept { return share_.shards; }
  /// Rows of all shards together.
  std::uint64_t rows_of_all() const noexcept { return chosen_rows_; }
  /// Rows are drawn from windows.
  bool is_pooled() const noexcept { return pooled_; }
  std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t run_rows() const noexcept { return run_rows_; }
  /// Rows of a window; rows() where there is no pool. The last window may be shorter.
  std::uint64_t window_rows() const noexcept { return window_rows_; }

  /// Appends the extents of the reading positions [first, first + count), neighbours joined.
  void read(std::uint64_t epoch, std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const;
  /// The draw of one window.
  gpu::permutation draw(std::uint64_t epoch, std::uint64_t window) const noexcept;
  /// The row at `position` of the epoch.
  std::uint64_t row(std::uint64_t epoch, std::uint64_t position) const noexcept;
  /// The row at a reading position.
  std::uint64_t reading_row(std::uint64_t epoch, std::uint64_t position) const noexcept;

  /// A number that tells apart sets of rows that take part; 0 where all do.
  std::uint64_t rows_fingerprint() const noexcept;
  /// For people: "shuffled: seed 42, runs of 256 rows, pool of 16384 rows".
  std::string description() const;

 private:
  struct run_place {
    std::uint64_t first_row;
    std::uint64_t rows;
    std::uint64_t offset;
  };
  void choose_run(const shuffled& wish, const shuffled& defaults);
  void choose_pool(const shuffled& wish, const shuffled& defaults);
  run_place run_at(std::uint64_t epoch, std::uint64_t position) const noexcept;

  std::uint64_t rows_of_shard(std::uint64_t shard) const noexcept;
  std::uint64_t source_row(std::uint64_t place) const noexcept;

  std::shared_ptr<const row_set> only_;
  shard_options share_;
  std::uint64_t source_rows_ = 0;
  std::uint64_t chosen_rows_ = 0;  ///< of all shards
  std::uint64_t rows_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t run_rows_ = 0;
  std::uint64_t window_rows_ = 0;
  bool permuted_ = false;  ///< runs are read in an order of their own
  bool pooled_ = false;
};

}  // namespace penstock::pipeline
