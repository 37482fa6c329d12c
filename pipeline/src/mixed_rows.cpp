#include "mixed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace penstock::pipeline {
namespace {

__extension__ using wide = unsigned __int128;

/// round(turn * share / 2^64)
std::uint64_t turns_before(std::uint64_t turn, std::uint64_t share) noexcept {
  const wide turns = turn, half = std::uint64_t{1} << 63;
  return static_cast<std::uint64_t>((turns * share + half) >> 64);
}

}  // namespace

mixed_rows::mixed_rows(std::shared_ptr<const mix_table> mix, const options& how)
    : mix_(std::move(mix)), how_(how), full_(mix_->rows / how.run_rows), is_cut_(mix_->rows % how.run_rows > 0) {
  long double rest = 0;
  for (const auto& part : mix_->parts) rest += part.ratio;
  for (const auto& part : mix_->parts) {
    const long double share = part.ratio / rest * 0x1p64L;
    shares_.push_back(share < 0x1p64L ? static_cast<std::uint64_t>(share) : ~std::uint64_t{0});
    rest -= part.ratio;
  }
}

row_sequence::stretch mixed_rows::at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  // What a source gave before: full turns, and short ones of the epochs before.
  const std::uint64_t turn = position / how_.run_rows, offset = position % how_.run_rows;
  turn_of of = whose(turn < full_ ? turn_at(epoch, turn) : epoch);
  if (is_cut_) of.number += turn < full_ ? turns_of(of.part, epoch) : turns_of(of.part, (epoch + 1) * full_);
  return in_part(of, offset);
}

/// The number, among the full turns of all epochs, of what is read at a turn of one. Shards would meet the same source
/// again and again where turns go round as their number does.
std::uint64_t mixed_rows::turn_at(std::uint64_t epoch, std::uint64_t turn) const noexcept {
  const std::uint64_t round = turn / how_.shards, first = round * how_.shards;
  if (how_.shards > 1 && full_ - first >= how_.shards) {
    const gpu::permutation among(how_.shards, key(how_.seed, epoch, purpose::sources, round));
    turn = first + among(turn - first);
  }
  return epoch * full_ + turn;
}

mixed_rows::turn_of mixed_rows::whose(std::uint64_t turn) const noexcept {
  std::size_t part = 0;
  for (; part + 1 < shares_.size(); ++part) {
    const std::uint64_t before = turns_before(turn, shares_[part]);
    if (turns_before(turn + 1, shares_[part]) > before) return {part, before};
    turn -= before;
  }
  return {part, turn};
}

/// How many of the turns before a number are a source's.
std::uint64_t mixed_rows::turns_of(std::size_t part, std::uint64_t before) const noexcept {
  for (std::size_t earlier = 0; earlier < part; ++earlier) before -= turns_before(before, shares_[earlier]);
  return part + 1 < shares_.size() ? turns_before(before, shares_[part]) : before;
}

row_sequence::stretch mixed_rows::in_part(turn_of turn, std::uint64_t offset) const noexcept {
  const mix_table::part& part = mix_->parts[turn.part];
  const std::uint64_t run_rows = how_.run_rows, runs = (part.rows + run_rows - 1) / run_rows;
  const std::uint64_t pass = turn.number / runs;
  std::uint64_t run = turn.number % runs;
  if (how_.permuted) run = gpu::permutation(runs, key(how_.seed, pass, purpose::in_source, turn.part))(run);
  const std::uint64_t first = run * run_rows, own = std::min(run_rows, part.rows - first);
  if (offset < own) return {part.first + first + offset, own - offset};
  const std::uint64_t from = key(how_.seed, pass, purpose::filling, turn.part) % part.rows;
  const std::uint64_t row = (from + (offset - own)) % part.rows;
  return {part.first + row, std::min(run_rows - offset, part.rows - row)};
}

std::uint64_t mixed_rows::fingerprint() const noexcept {
  std::uint64_t mixed = gpu::mix(mix_->parts.size());
  for (const auto& part : mix_->parts)
    mixed = gpu::mix(gpu::mix(mixed ^ part.rows) ^ std::bit_cast<std::uint64_t>(part.ratio));
  if (is_cut_)
    mixed = gpu::mix(mixed ^ how_.run_rows);  // states from before short turns went round are of another order
  return mixed;
}

std::string mixed_rows::sources() const {
  std::string ratios;
  for (const auto& part : mix_->parts) ratios += fmt::format("{}{}", ratios.empty() ? "" : " : ", part.ratio);
  return fmt::format("{} rows of {} sources mixed {}, drawn with repetition", mix_->rows, mix_->parts.size(), ratios);
}

}  // namespace penstock::pipeline
