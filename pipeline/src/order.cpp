#include "row_set.hpp"

#include <penstock/pipeline/order.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

// Defaults keep what storage keeps together, within a size that still mixes: see order_defaults().
constexpr std::uint64_t least_run_bytes = 64 << 10;
constexpr std::uint64_t most_run_bytes = 4 << 20;
constexpr std::uint64_t runs_in_a_pool = 32;
constexpr std::uint64_t most_pool_bytes = 128 << 20;

// Purposes that draw from the same seed and epoch must not share keys.
enum class purpose : std::uint64_t { runs = 1, tail = 2, draw = 3 };

// Which window of which shard: the window alone where there is one shard.
std::uint64_t window_number(std::uint64_t window, std::uint64_t shard) { return window ^ (shard << 40); }

std::uint64_t key(std::uint64_t seed, std::uint64_t epoch, purpose why, std::uint64_t index) {
  return gpu::mix(gpu::mix(gpu::mix(gpu::mix(seed) ^ epoch) ^ static_cast<std::uint64_t>(why)) ^ index);
}

}  // namespace

shuffled order_defaults(const source_shape& shape) {
  const auto row_bytes = std::max<std::uint64_t>(shape.row_bytes, 1);
  const auto rows_of = [&](std::uint64_t bytes) { return std::max<std::uint64_t>(bytes / row_bytes, 1); };
  const auto rows = std::max<std::uint64_t>(shape.rows, 1);
  const auto chunk = std::max<std::uint64_t>(shape.chunk_rows, 1);
  std::uint64_t run = chunk;
  if (run < rows_of(least_run_bytes)) run = chunk * ((rows_of(least_run_bytes) + chunk - 1) / chunk);
  run = std::min({run, rows_of(most_run_bytes), rows});
  std::uint64_t pool = std::min(run * runs_in_a_pool, std::max(rows_of(most_pool_bytes), run));
  return {.run_rows = run, .pool_rows = std::min(pool, rows)};
}

order::order(const order_options& options, source_shape shape, std::shared_ptr<const row_set> only, shard_options share)
    : only_(std::move(only)), share_(share), source_rows_(shape.rows) {
  if (share.shard >= share.shards)
    throw std::invalid_argument(
        fmt::format("there is no shard {} of {}; shards count from 0", share.shard, share.shards));
  if (only_) shape.rows = only_->size();
  chosen_rows_ = rows_ = shape.rows;
  const shuffled defaults = order_defaults(shape);
  const auto* shuffle = std::get_if<shuffled>(&options);
  if (const auto* every_row = std::get_if<random>(&options)) {
    permuted_ = true;
    seed_ = every_row->seed;
    run_rows_ = 1;
  } else if (shuffle) {
    permuted_ = pooled_ = true;
    seed_ = shuffle->seed;
    choose_run(*shuffle, defaults);
  } else if (share.shards > 1) {
    run_rows_ = defaults.run_rows;
  }
  if (share.shards > 1) rows_ = rows_of_shard(share.shard);
  window_rows_ = rows_;
  if (shuffle) choose_pool(*shuffle, defaults);
}

void order::choose_run(const shuffled& wish, const shuffled& defaults) {
  run_rows_ = wish.run_rows ? wish.run_rows : std::min(defaults.run_rows, std::max<std::uint64_t>(wish.pool_rows, 1));
  if (!wish.run_rows && !wish.pool_rows) run_rows_ = defaults.run_rows;
  run_rows_ = std::min(run_rows_, std::max<std::uint64_t>(chosen_rows_, 1));
}

void order::choose_pool(const shuffled& wish, const shuffled& defaults) {
  window_rows_ = wish.pool_rows ? wish.pool_rows : std::max(defaults.pool_rows, run_rows_);
  if (window_rows_ < run_rows_ && window_rows_ < chosen_rows_)
    throw std::invalid_argument(fmt::format(
        "a pool of {} rows cannot hold a run of {}; raise pool_rows or lower run_rows", window_rows_, run_rows_));
  window_rows_ = std::min(window_rows_, std::max<std::uint64_t>(rows_, 1));
}

/// Full runs are dealt in turn; the short last one goes to the shard whose turn it is then.
std::uint64_t order::rows_of_shard(std::uint64_t shard) const noexcept {
  const std::uint64_t full = chosen_rows_ / run_rows_, tail = chosen_rows_ % run_rows_;
  const std::uint64_t runs = full / share_.shards + (shard < full % share_.shards);
  return runs * run_rows_ + (shard == full % share_.shards ? tail : 0);
}

std::uint64_t order::most_rows() const noexcept { return share_.shards == 1 ? rows_ : rows_of_shard(0); }
std::uint64_t order::least_rows() const noexcept {
  return share_.shards == 1 ? rows_ : rows_of_shard(share_.shards - 1);
}

// Reading goes through the full runs in permuted order; the short last run, if there is one, is put in at a drawn
// place.
void order::read(std::uint64_t epoch, std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const {
  if (first + count > rows_ || first + count < first)
    throw std::invalid_argument(
        fmt::format("positions {} to {} are not in an epoch of {} rows", first, first + count, rows_));
  const auto append = [&](std::uint64_t place, std::uint64_t n) {
    if (only_)
      only_->append(place, n, out);
    else
      append_extent(out, place, n);
  };
  if (!permuted_ && share_.shards == 1) return append(first, count);
  while (count > 0) {
    const run_place place = run_at(epoch, first);
    const auto n = std::min(count, place.rows - place.offset);
    append(place.first_row + place.offset, n);
    first += n, count -= n;
  }
}

std::uint64_t order::source_row(std::uint64_t place) const noexcept { return only_ ? only_->row(place) : place; }
std::uint64_t order::rows_fingerprint() const noexcept { return only_ ? only_->fingerprint() : 0; }

order::run_place order::run_at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  const std::uint64_t full = chosen_rows_ / run_rows_, tail = chosen_rows_ % run_rows_;
  const auto runs = permuted_ ? gpu::permutation(full, key(seed_, epoch, purpose::runs, 0)) : gpu::permutation();
  if (share_.shards > 1) {
    // The run's turn among all; the short one has the last.
    const std::uint64_t turn = position / run_rows_ * share_.shards + share_.shard, offset = position % run_rows_;
    if (turn >= full) return {full * run_rows_, tail, offset};
    return {runs(turn) * run_rows_, run_rows_, offset};
  }
  const std::uint64_t tail_at = tail ? key(seed_, epoch, purpose::tail, 0) % (full + 1) : full;
  const std::uint64_t tail_first = tail_at * run_rows_;
  if (position >= tail_first && position < tail_first + tail) return {full * run_rows_, tail, position - tail_first};
  const std::uint64_t among_full = position < tail_first ? position : position - tail;
  return {runs(among_full / run_rows_) * run_rows_, run_rows_, among_full % run_rows_};
}

gpu::permutation order::draw(std::uint64_t epoch, std::uint64_t window) const noexcept {
  if (!pooled_) return gpu::permutation::identity();
  const std::uint64_t first = window * window_rows_;
  return {std::min(window_rows_, rows_ - std::min(first, rows_)),
          key(seed_, epoch, purpose::draw, window_number(window, share_.shard))};
}

std::uint64_t order::reading_row(std::uint64_t epoch, std::uint64_t position) const noexcept {
  if (!permuted_ && share_.shards == 1) return source_row(position);
  const run_place place = run_at(epoch, position);
  return source_row(place.first_row + place.offset);
}

std::uint64_t order::row(std::uint64_t epoch, std::uint64_t position) const noexcept {
  if (!pooled_) return reading_row(epoch, position);
  const std::uint64_t window = position / window_rows_, first = window * window_rows_;
  return reading_row(epoch, first + draw(epoch, window)(position - first));
}

std::string order::description() const {
  std::string text = "sequential";
  if (pooled_)
    text = fmt::format("shuffled: seed {}, runs of {} rows, pool of {} rows", seed_, run_rows_, window_rows_);
  else if (permuted_)
    text = fmt::format("random: seed {}, every row by itself", seed_);
  if (only_) text += fmt::format("; {} of {} rows take part", chosen_rows_, source_rows_);
  if (share_.shards > 1) text += fmt::format("; dealt to {} shards", share_.shards);
  return text;
}

}  // namespace penstock::pipeline
