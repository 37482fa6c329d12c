#include "dealing.hpp"
#include "make_sequence.hpp"
#include "row_supply.hpp"

#include <penstock/pipeline/order.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

// Defaults keep what storage keeps together, within a size that still mixes: see order_defaults().
constexpr std::uint64_t least_run_bytes = 256 << 10;
constexpr std::uint64_t most_run_bytes = 4 << 20;
constexpr std::uint64_t runs_in_a_pool = 32;
constexpr std::uint64_t most_pool_bytes = 128 << 20;
constexpr double most_decoded_again = 1.25;

/// How often a chunk is decoded where runs of `run` rows come in any order.
double times_decoded(std::uint64_t chunk, std::uint64_t run) {
  if (run % chunk == 0) return 1;
  const double parts = static_cast<double>(chunk) / static_cast<double>(run);
  return chunk % run == 0 ? parts : parts + 1;  // runs that do not end where chunks do reach into one more
}

double decoded_bytes(const source_shape& shape, std::uint64_t run) {
  double bytes = 0;
  for (const decoded_field& field : shape.decoded)
    bytes += static_cast<double>(field.row_bytes) * times_decoded(std::min(field.chunk_rows, shape.rows), run);
  return bytes;
}

/// Another run in place of `run`, where that decodes much more than there is: one that ends where chunks end, or one as
/// long as they are, the shortest that will do.
std::uint64_t fitted_to_chunks(std::uint64_t run, const source_shape& shape, std::uint64_t most_rows) {
  std::vector<std::uint64_t> heights, runs{run};
  double once = 0;
  for (const decoded_field& field : shape.decoded) {
    heights.push_back(std::min(field.chunk_rows, shape.rows));
    once += static_cast<double>(field.row_bytes);
  }
  std::sort(heights.begin(), heights.end());
  for (const std::uint64_t height : heights) {
    const std::uint64_t parts = (height + most_rows - 1) / most_rows;
    runs.push_back(height <= run ? run / height * height : (height + parts - 1) / parts);
  }
  for (const std::uint64_t wanted : runs)
    if (decoded_bytes(shape, wanted) <= once * most_decoded_again) return wanted;
  return *std::min_element(runs.begin(), runs.end(), [&](std::uint64_t x, std::uint64_t y) {
    return decoded_bytes(shape, x) < decoded_bytes(shape, y);
  });
}

// Which window of which shard: the window alone where there is one shard.
std::uint64_t window_number(std::uint64_t window, std::uint64_t shard) { return window ^ (shard << 40); }

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

shuffled order_defaults(const source_shape& shape) {
  const auto row_bytes = std::max<std::uint64_t>(shape.row_bytes, 1);
  const auto rows_of = [&](std::uint64_t bytes) { return std::max<std::uint64_t>(bytes / row_bytes, 1); };
  const auto rows = std::max<std::uint64_t>(shape.rows, 1);
  auto chunk = std::max<std::uint64_t>(shape.chunk_rows, 1);
  for (const decoded_field& field : shape.decoded) chunk = std::max(chunk, field.chunk_rows);
  std::uint64_t run = chunk;
  if (run < rows_of(least_run_bytes)) run = chunk * ((rows_of(least_run_bytes) + chunk - 1) / chunk);
  run = std::min({run, rows_of(most_run_bytes), rows});
  std::uint64_t least_pool = run;
  if (shape.rows > 0) {
    run = fitted_to_chunks(run, shape, rows_of(most_pool_bytes));
    if (run > least_pool) least_pool = 2 * run;  // or rows would be drawn from one chunk alone
  }
  const std::uint64_t pool = std::min(run * runs_in_a_pool, std::max(rows_of(most_pool_bytes), least_pool));
  return {.run_rows = run, .pool_rows = std::min(pool, rows)};
}

order::order(const order_options& options, source_shape shape, std::shared_ptr<const row_set> only, shard_options share)
    : order(options, shape, row_supply{.only = std::move(only)}, share) {}

order::order(const order_options& options, source_shape shape, const row_supply& supply, shard_options share)
    : only_(supply.only), source_rows_(shape.rows), seed_(seed_of(options)) {
  if (only_) shape.rows = only_->size();
  chosen_rows_ = shape.rows;
  const shuffled defaults = order_defaults(shape);
  const auto* shuffle = std::get_if<shuffled>(&options);
  const bool as_they_lie = std::holds_alternative<sequential>(options);
  permuted_ = !as_they_lie;
  if (shuffle)
    choose_run(*shuffle, defaults);
  else
    run_rows_ = as_they_lie && !supply.mix ? (share.shards > 1 ? defaults.run_rows : 0) : 1;
  sequence_ = make_sequence(options, {chosen_rows_, std::max<std::uint64_t>(run_rows_, 1), share.shards}, supply);
  dealt_ = std::make_shared<dealing>(share, sequence_->rows(), run_rows_);
  // Where a process takes a row from each of its shards in turn, it holds a run of each.
  if (shuffle)
    choose_pool(*shuffle, defaults);
  else if (dealt_->lanes() > 1 && run_rows_ > 1)
    pool_rows_ = run_rows_;
  pooled_ = pool_rows_ > 0;
  window_rows_ = rows();
  if (pooled_) window_rows_ = std::min(pool_rows_ * dealt_->lanes(), std::max<std::uint64_t>(rows(), 1));
}

void order::choose_run(const shuffled& wish, const shuffled& defaults) {
  run_rows_ = wish.run_rows ? wish.run_rows : std::min(defaults.run_rows, std::max<std::uint64_t>(wish.pool_rows, 1));
  if (!wish.run_rows && !wish.pool_rows) run_rows_ = defaults.run_rows;
  run_rows_ = std::min(run_rows_, std::max<std::uint64_t>(chosen_rows_, 1));
}

void order::choose_pool(const shuffled& wish, const shuffled& defaults) {
  pool_rows_ = wish.pool_rows ? wish.pool_rows : std::max(defaults.pool_rows, run_rows_);
  if (pool_rows_ < run_rows_ && pool_rows_ < chosen_rows_)
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
  const dealing::stretch in_sequence = dealt_->at(lane, row);
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
    text += fmt::format("; dealt to {} shards, by runs of {} rows", dealt_->shards(), run_rows_);
  return text;
}

}  // namespace penstock::pipeline
