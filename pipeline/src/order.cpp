#include "dealing.hpp"
#include "make_sequence.hpp"
#include "mixed_rows.hpp"
#include "row_supply.hpp"

#include <penstock/pipeline/order.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

// With fewer runs for each shard, what is left after the last round would be much of what a shard gets, and the file's
// last rows would always be the same shard's.
constexpr std::uint64_t fewest_rounds = 2;

// Which window of which shard: the window alone where there is one shard.
std::uint64_t window_number(std::uint64_t window, std::uint64_t shard) { return window ^ (shard << 40); }

void add_mix(source_shape& shape, const mix_table& mix) {
  double all = 0;
  for (const auto& part : mix.parts) all += part.ratio;
  for (const auto& part : mix.parts) shape.mixed.push_back({part.rows, part.ratio / all});
  shape.mixed_rows = mix.rows;
}

std::uint64_t seed_of(const order_options& options) {
  return std::visit(
      [](const auto& how) -> std::uint64_t {
        if constexpr (requires { how.seed; })
          return how.seed;
        else
          return 0;
      },
      options);
}

}  // namespace

order::order(const order_options& options, source_shape shape, std::shared_ptr<const row_set> only, shard_options share)
    : order(options, shape, row_supply{.only = std::move(only)}, share) {}

order::order(const order_options& options, source_shape shape, const row_supply& supply, shard_options share)
    : only_(supply.only), source_rows_(shape.rows), seed_(seed_of(options)) {
  if (only_) shape.rows = only_->size();
  chosen_rows_ = shape.rows;
  if (supply.mix) add_mix(shape, *supply.mix);
  const auto* shuffle = std::get_if<shuffled>(&options);
  const shuffled chosen = order_defaults(shape, shuffle ? *shuffle : shuffled{}, share.shards);
  const bool as_they_lie = std::holds_alternative<sequential>(options);
  permuted_ = !as_they_lie;
  if (shuffle)
    run_rows_ = std::min(chosen.run_rows, std::max<std::uint64_t>(chosen_rows_, 1));
  else
    run_rows_ = as_they_lie && !supply.mix ? (share.shards > 1 ? chosen.run_rows : 0) : 1;
  sequence_ = make_sequence(options, {chosen_rows_, std::max<std::uint64_t>(run_rows_, 1), share.shards}, supply);
  dealt_ = std::make_shared<dealing>(share, sequence_->rows(), run_rows_);
  rest_is_turned_ = shuffle && dealt_->shards() > 1 && dealt_->rounds() < fewest_rounds;
  // Where a process takes a row from each of its shards in turn, it holds a run of each.
  if (shuffle)
    take_pool(chosen.pool_rows, shuffle->pool_rows > 0);
  else if (dealt_->lanes() > 1 && run_rows_ > 1)
    pool_rows_ = run_rows_;
  pooled_ = pool_rows_ > 0;
  window_rows_ = rows();
  if (pooled_) window_rows_ = std::min(pool_rows_ * dealt_->lanes(), std::max<std::uint64_t>(rows(), 1));
}

void order::take_pool(std::uint64_t wanted, bool is_asked_for) {
  pool_rows_ = wanted;
  if (is_asked_for && pool_rows_ < run_rows_ && pool_rows_ < chosen_rows_)
    throw std::invalid_argument(fmt::format(
        "a pool of {} rows cannot hold a run of {}; raise pool_rows or lower run_rows", pool_rows_, run_rows_));
  const std::uint64_t of_a_shard = (sequence_->rows() + dealt_->shards() - 1) / dealt_->shards();
  pool_rows_ = std::min(pool_rows_, std::max<std::uint64_t>(of_a_shard, 1));
}

std::uint64_t order::rows() const noexcept { return dealt_->rows(); }
std::uint64_t order::most_rows() const noexcept { return dealt_->most_rows(); }
std::uint64_t order::least_rows() const noexcept { return dealt_->least_rows(); }
std::uint64_t order::shards() const noexcept { return dealt_->shards(); }
std::uint64_t order::ranks() const noexcept { return dealt_->ranks(); }
std::uint64_t order::rows_of_all() const noexcept { return sequence_->rows(); }
bool order::repeats() const noexcept { return sequence_->repeats(); }
std::uint64_t order::rows_fingerprint() const noexcept { return only_ ? only_->fingerprint() : 0; }
std::uint64_t order::draws_fingerprint() const noexcept { return sequence_->fingerprint(); }

void order::check_positions(std::uint64_t first, std::uint64_t count) const {
  if (first + count > rows() || first + count < first)
    throw std::invalid_argument(
        fmt::format("positions {} to {} are not in an epoch of {} rows", first, first + count, rows()));
}

void order::read(std::uint64_t epoch, std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const {
  check_positions(first, count);
  while (count > 0) {
    const extent next = stretch_at(epoch, first);
    const auto n = std::min(count, next.count);
    if (only_)
      only_->append(next.first, n, out);
    else
      append_extent(out, next.first, n);
    first += n, count -= n;
  }
}

/// Places that follow each other from a reading position on.
extent order::stretch_at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  if (dealt_->shards() == 1) {
    const auto [first, count] = sequence_->at(epoch, position);
    return {first, count};
  }
  const std::uint64_t lanes = dealt_->lanes();
  std::uint64_t lane = position % lanes, row = position / lanes, left = lanes > 1 ? 1 : position + rows();
  if (pooled_ && lanes > 1) {
    // In a window lanes lie one after another, the first ones one row longer: as gpu::permutation::dealt() has it.
    const std::uint64_t window = position / window_rows_, offset = position % window_rows_;
    const std::uint64_t size = std::min(window_rows_, rows() - window * window_rows_);
    const std::uint64_t least = size / lanes, longer = size % lanes, edge = longer * (least + 1);
    lane = offset < edge ? offset / (least + 1) : longer + (offset - edge) / least;
    const std::uint64_t turn = offset - lane * least - std::min(lane, longer);
    row = window * pool_rows_ + turn;
    left = least + (lane < longer) - turn;
  }
  const std::uint64_t rest_from = rest_is_turned_ ? key(seed_, epoch, purpose::rest, 0) : 0;
  const dealing::stretch in_sequence = dealt_->at(lane, row, rest_from);
  const row_sequence::stretch places = sequence_->at(epoch, in_sequence.first);
  return {places.first, std::min({places.rows, in_sequence.rows, left})};
}

gpu::permutation order::draw(std::uint64_t epoch, std::uint64_t window) const noexcept {
  if (!pooled_) return gpu::permutation::identity();
  const std::uint64_t first = window * window_rows_, size = std::min(window_rows_, rows() - std::min(first, rows()));
  const std::uint64_t base = key_base(seed_, epoch, purpose::draw), number = window_number(window, dealt_->rank());
  if (dealt_->lanes() == 1) return {size, gpu::mix(base ^ number)};
  return gpu::permutation::dealt(size, dealt_->lanes(), permuted_, base, number, dealt_->ranks() << 40);
}

std::uint64_t order::reading_row(std::uint64_t epoch, std::uint64_t position) const {
  check_positions(position, 1);
  const std::uint64_t place = stretch_at(epoch, position).first;
  return only_ ? only_->row(place) : place;
}

std::uint64_t order::row(std::uint64_t epoch, std::uint64_t position) const {
  check_positions(position, 1);
  if (!pooled_) return reading_row(epoch, position);
  const std::uint64_t window = position / window_rows_, first = window * window_rows_;
  return reading_row(epoch, first + draw(epoch, window)(position - first));
}

std::string order::description() const {
  std::string text = sequence_->description();
  if (text.empty() && pooled_ && permuted_)
    text = fmt::format("shuffled: seed {}, runs of {} rows, pool of {} rows", seed_, run_rows_, pool_rows_);
  else if (text.empty() && permuted_)
    text = fmt::format("random: seed {}, every row by itself", seed_);
  else if (text.empty())
    text = "sequential";
  if (const std::string sources = sequence_->sources(); !sources.empty()) text += "; " + sources;
  if (only_) text += fmt::format("; {} of {} rows take part", chosen_rows_, source_rows_);
  if (dealt_->shards() > 1)
    text += fmt::format("; dealt to {} shards, by runs of {} rows{}", dealt_->shards(), run_rows_,
                        rest_is_turned_ ? ", what is left from a drawn row on" : "");
  return text;
}

}  // namespace penstock::pipeline
