#pragma once

#include <penstock/pipeline/description.hpp>

#include <cstdint>

namespace penstock::pipeline {

/// Where a run may begin: numbers of epochs and rows stay within 64 bits.
inline constexpr std::uint64_t most_epochs = std::uint64_t{1} << 62;

/// One block of a run: `rows` reading positions of `epoch` from `first`.
struct block_place {
  std::uint64_t epoch = 0;
  std::uint64_t window = 0;
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
};

/// Rows that come out together: positions [first, first + rows) of `epoch`, at ring positions from `ring_first` on.
/// They can come out once the run's blocks before `blocks_needed` have arrived, and then the blocks before
/// `blocks_done` are used up. Padding: rows after the epoch's last one.
struct piece {
  std::uint64_t epoch = 0;
  std::uint64_t window = 0;
  std::uint64_t window_first = 0;  ///< position where the window begins
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  std::uint64_t ring_first = 0;
  std::uint64_t first_block = 0;  ///< run's number of the window's block 0 (of the block where there is no pool)
  std::uint64_t blocks_needed = 0;
  std::uint64_t blocks_done = 0;
  bool padding = false;
};

/// What a run of epochs reads and puts out, block by block and piece by piece. Ring positions count rows over the whole
/// run; each epoch begins at a multiple of batch_rows. Pure.
class schedule {
 public:
  struct sizes {
    std::uint64_t block_rows = 1;
    std::uint64_t batch_rows = 1;
    std::uint64_t ring_rows = 1;
    last_batch last = last_batch::keep;
    std::uint64_t piece_rows = 0;  ///< of a piece that is drawn from a pool, at most; as block_rows where that is more
  };

  /// Throws std::invalid_argument for a first batch beyond the end of the epoch, and for epochs beyond 2^62.
  schedule(const order& rows, const sizes& how, std::uint64_t first_epoch, std::uint64_t epochs,
           std::uint64_t first_batch);

  std::uint64_t blocks() const noexcept { return blocks_; }
  std::uint64_t batches() const noexcept { return batches_; }
  /// Ring position after the run's last row.
  std::uint64_t end() const noexcept { return batches_ * sizes_.batch_rows; }
  block_place block(std::uint64_t number) const noexcept;
  /// Ring position of the first row of a block, where there is no pool.
  std::uint64_t ring_position(const block_place& block) const noexcept;

  /// The piece at ring position `at` (< end()): as long as possible up to `limit`, its window or block, the ring's wrap
  /// and the rows of a piece.
  piece piece_at(std::uint64_t at, std::uint64_t limit) const noexcept;

  struct batch_place {
    std::uint64_t epoch = 0;
    std::uint64_t index = 0;  ///< in its epoch
    std::uint64_t first = 0;  ///< position in its epoch
    std::uint64_t valid_rows = 0;
    std::uint64_t rows = 0;
    bool last_of_epoch = false;
  };
  batch_place batch(std::uint64_t number) const noexcept;

  /// The same for every shard.
  static std::uint64_t batches_per_epoch(const order& rows, std::uint64_t batch_rows, last_batch last) noexcept {
    return last == last_batch::drop ? rows.least_rows() / batch_rows : (rows.most_rows() + batch_rows - 1) / batch_rows;
  }

 private:
  std::uint64_t window_end(std::uint64_t window) const noexcept;
  std::uint64_t blocks_of_window(std::uint64_t window) const noexcept;
  /// Blocks of an epoch before the block that holds reading position `position` or, with a pool, its window.
  std::uint64_t blocks_before(std::uint64_t position) const noexcept;

  const order* order_;
  sizes sizes_;
  bool pooled_;
  std::uint64_t first_epoch_;
  std::uint64_t start_;       ///< first position of the first epoch
  std::uint64_t epoch_rows_;  ///< positions of an epoch that come out
  std::uint64_t epoch_batches_;
  std::uint64_t epoch_blocks_;
  std::uint64_t skipped_blocks_;  ///< of the first epoch
  std::uint64_t blocks_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t skipped_batches_;
};

}  // namespace penstock::pipeline
