#pragma once

#include <cstdint>
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
  std::uint64_t run_rows = 0;   ///< 0: computed from source, pool and shards (order_defaults), not from budgets
  std::uint64_t pool_rows = 0;  ///< of each shard; 0: computed likewise; at least run_rows, at most the shard's rows
};

/// Rows in an order drawn from all orders, every row by itself. Mixes best, and reads worst: each row is a read of its
/// own, and where rows lie in compressed chunks, each costs its whole chunk, but for those of a block that share one.
struct random {
  std::uint64_t seed = 0;
};

/// Rows drawn with repetition, each draw by itself: a row comes with probability weight / sum of the weights of the
/// rows that take part. In an epoch some rows come several times, and others not at all. Read as `random` is, at its
/// price. Costs 8 bytes of host memory for each row that takes part, which are in the plan.
struct weighted {
  std::uint64_t seed = 0;
  /// A field of the source with one number in each row: its weight. Read when the source is opened.
  std::string field{};
  /// Or the weights, one for each row of the source.
  std::vector<double> weights{};
  std::uint64_t rows = 0;  ///< of an epoch; 0: as many as take part
};

/// Rows drawn with repetition so that every class comes equally often: rounds in which each class comes once, in an
/// order of its own. Within a class every row comes once before any comes again. In an epoch rows of small classes come
/// several times, and some of large ones not at all. Read as `random` is, at its price. Costs 8 bytes of host memory
/// for each row that takes part, which are in the plan.
struct class_balanced {
  std::uint64_t seed = 0;
  /// A field of the source: rows with the same bytes in it are of one class. Read when the source is opened.
  std::string field = "label";
  std::uint64_t rows = 0;  ///< of an epoch; 0: as many as take part
};

using order_options = std::variant<sequential, shuffled, random, weighted, class_balanced>;

/// An order that several processes share: it is dealt to so many shards, in turn, run by run (what is left at the end,
/// row by row: shards differ by a row at most), and each shard has a pool of its own. Where runs were asked for that
/// are so long that a shard gets less than two of them, what is left is dealt from a row on that each epoch draws. The
/// shards of an epoch hold what one process would have read. How many shards there are is part of the order; who serves
/// which is not: every number of processes that divides `shards` sees the same rows in each step, where their batches
/// together are of the same size.
struct shard_options {
  std::uint64_t shards = 1;
  std::uint64_t rank = 0;   ///< of this process: it serves the shards rank, rank + ranks, rank + 2 * ranks and so on
  std::uint64_t ranks = 0;  ///< processes; 0: as many as shards
};

/// A field whose chunks are decoded as a whole, however few of their rows are wanted.
struct decoded_field {
  std::uint64_t row_bytes = 0;
  std::uint64_t chunk_rows = 1;
};

/// One of the sources that are mixed.
struct mixed_part {
  std::uint64_t rows = 0;  ///< that take part
  double share = 1;        ///< of the rows of an epoch; all shares together are 1
};

/// What an order's defaults are computed from.
struct source_shape {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;   ///< stored bytes of a row, over all fields
  std::uint64_t chunk_rows = 1;  ///< the largest chunk extent along the rows, over the first datasets of all fields
  std::vector<decoded_field> decoded{};  ///< the fields with filters
  std::vector<mixed_part> mixed{};       ///< where it is mixed out of several
  std::uint64_t mixed_rows = 0;          ///< and then: of an epoch
};

/// What a shuffled order leaves open (0), for so many shards: runs of what storage keeps together (whole chunks, at
/// least 256 KiB and at most 4 MiB), a pool of 32 runs, at most 128 MiB and two runs at least. `wish`: what is asked
/// for stays. Where that is the pool, a run is a 32nd of it at most. Where it is the run, the pool holds 32 of these as
/// far as 128 MiB go, and is no smaller than without the wish.
///
/// Each run decodes the chunks with filters that it touches. Where runs would decode over a quarter more than there is,
/// they end where chunks do, or are as long as chunks are, up to 128 MiB or a quarter of the pool that was asked for
/// (of taller ones, equal parts).
///
/// Several shards: a shard gets eight runs at least. Mixed sources: each of them is eight runs at least, and so is its
/// part of a pool, counting no part as less than a 64th; where chunks are decoded, the pool first grows for that up to
/// 128 MiB. Both cut runs, chunks or not: price() says what that decodes.
shuffled order_defaults(const source_shape& shape, const shuffled& wish = {}, std::uint64_t shards = 1);

}  // namespace penstock::pipeline
