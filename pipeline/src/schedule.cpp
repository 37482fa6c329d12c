#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

// More rows than anybody waits for: `epochs(0, -1)` is a run without an end, whose positions and numbers stay within 64
// bits.
constexpr std::uint64_t most_rows_of_a_run = std::uint64_t{1} << 62;

}  // namespace

schedule::schedule(const order& rows, const sizes& how, std::uint64_t first_epoch, std::uint64_t epochs,
                   std::uint64_t first_batch)
    : order_(&rows), sizes_(how), pooled_(rows.is_pooled()), first_epoch_(first_epoch) {
  if (first_epoch > most_epochs)
    throw std::invalid_argument(
        fmt::format("a run cannot begin at epoch {}; epochs are numbered up to {}", first_epoch, most_epochs));
  epoch_batches_ = batches_per_epoch(rows, how.batch_rows, how.last);
  epoch_rows_ = std::min(rows.rows(), epoch_batches_ * how.batch_rows);
  if (first_batch > epoch_batches_)
    throw std::invalid_argument(
        fmt::format("a run cannot begin at batch {}: an epoch has {}", first_batch, epoch_batches_));
  skipped_batches_ = first_batch;
  start_ = skipped_batches_ * how.batch_rows;
  const std::uint64_t span = std::max<std::uint64_t>(epoch_batches_ * how.batch_rows, 1);
  epochs = std::min(epochs, std::max<std::uint64_t>(most_rows_of_a_run / span, 1));
  batches_ = epochs > 0 ? epochs * epoch_batches_ - skipped_batches_ : 0;
  if (epochs == 0 || epoch_rows_ == 0) {
    epoch_blocks_ = skipped_blocks_ = 0;
    return;
  }
  const std::uint64_t last = epoch_rows_ - 1;
  epoch_blocks_ =
      pooled_ ? blocks_before(last) + blocks_of_window(last / order_->window_rows()) : blocks_before(last) + 1;
  skipped_blocks_ = start_ >= epoch_rows_ ? epoch_blocks_ : blocks_before(start_);
  blocks_ = epochs * epoch_blocks_ - skipped_blocks_;
}

std::uint64_t schedule::window_end(std::uint64_t window) const noexcept {
  return std::min((window + 1) * order_->window_rows(), order_->rows());
}

std::uint64_t schedule::blocks_of_window(std::uint64_t window) const noexcept {
  const std::uint64_t rows = window_end(window) - window * order_->window_rows();
  return (rows + sizes_.block_rows - 1) / sizes_.block_rows;
}

std::uint64_t schedule::blocks_before(std::uint64_t position) const noexcept {
  if (!pooled_) return position / sizes_.block_rows;
  const std::uint64_t whole = (order_->window_rows() + sizes_.block_rows - 1) / sizes_.block_rows;
  return position / order_->window_rows() * whole;
}

block_place schedule::block(std::uint64_t number) const noexcept {
  const std::uint64_t of_run = number + skipped_blocks_;
  const std::uint64_t epoch = of_run / epoch_blocks_, in_epoch = of_run % epoch_blocks_;
  block_place place;
  place.epoch = first_epoch_ + epoch;
  if (!pooled_) {
    place.first = in_epoch * sizes_.block_rows;
    const std::uint64_t end = std::min(place.first + sizes_.block_rows, epoch_rows_);
    if (epoch == 0) place.first = std::max(place.first, start_);
    place.rows = end - place.first;
    return place;
  }
  const std::uint64_t whole = (order_->window_rows() + sizes_.block_rows - 1) / sizes_.block_rows;
  place.window = in_epoch / whole;
  place.first = place.window * order_->window_rows() + in_epoch % whole * sizes_.block_rows;
  place.rows = std::min(place.first + sizes_.block_rows, window_end(place.window)) - place.first;
  return place;
}

std::uint64_t schedule::ring_position(const block_place& block) const noexcept {
  return (block.epoch - first_epoch_) * epoch_batches_ * sizes_.batch_rows + block.first - start_;
}

piece schedule::piece_at(std::uint64_t at, std::uint64_t limit) const noexcept {
  const std::uint64_t span = epoch_batches_ * sizes_.batch_rows, of_run = at + start_;
  const std::uint64_t epoch = of_run / span;
  piece p;
  p.epoch = first_epoch_ + epoch;
  p.first = of_run % span;
  p.ring_first = at;
  // The first epoch lacks the blocks before its start.
  const std::uint64_t epoch_first_block = epoch * epoch_blocks_ - skipped_blocks_;  // wraps below 0 and back
  const std::uint64_t room = std::min(limit - at, sizes_.ring_rows - at % sizes_.ring_rows);
  if (p.first >= epoch_rows_) {
    p.padding = true;
    p.rows = std::min(room, span - p.first);
    p.blocks_needed = p.blocks_done = p.first_block = epoch_first_block + epoch_blocks_;
    return p;
  }
  std::uint64_t end = 0;
  if (pooled_) {
    p.window = p.first / order_->window_rows();
    p.window_first = p.window * order_->window_rows();
    p.first_block = epoch_first_block + blocks_before(p.first);
    p.blocks_needed = p.first_block + blocks_of_window(p.window);
    end = std::min(window_end(p.window), epoch_rows_);
  } else {
    const std::uint64_t in_epoch = p.first / sizes_.block_rows;
    p.first_block = epoch_first_block + in_epoch;
    p.blocks_needed = p.first_block + 1;
    p.window_first = std::max(in_epoch * sizes_.block_rows, epoch == 0 ? start_ : 0);
    end = std::min((in_epoch + 1) * sizes_.block_rows, epoch_rows_);
  }
  p.rows = std::min({room, end - p.first, std::max(sizes_.block_rows, sizes_.piece_rows)});
  p.blocks_done = p.first + p.rows == end ? p.blocks_needed : p.first_block;
  return p;
}

schedule::batch_place schedule::batch(std::uint64_t number) const noexcept {
  const std::uint64_t of_run = number + skipped_batches_;
  batch_place place;
  place.epoch = first_epoch_ + of_run / epoch_batches_;
  place.index = of_run % epoch_batches_;
  place.first = place.index * sizes_.batch_rows;
  place.valid_rows = std::min(sizes_.batch_rows, epoch_rows_ - std::min(place.first, epoch_rows_));
  place.rows = sizes_.last == last_batch::pad ? sizes_.batch_rows : place.valid_rows;
  place.last_of_epoch = place.index + 1 == epoch_batches_;
  return place;
}

}  // namespace penstock::pipeline
