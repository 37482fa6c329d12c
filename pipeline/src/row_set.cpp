#include "row_set.hpp"

#include <penstock/gpu/permutation.hpp>

#include <algorithm>
#include <bit>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t word_rows = 64, group_words = 8, group_rows = word_rows * group_words;

std::uint64_t words_for(std::uint64_t rows) { return (rows + word_rows - 1) / word_rows; }
std::uint64_t groups_for(std::uint64_t rows) { return (rows + group_rows - 1) / group_rows; }

/// The bits [from, to) of a word.
std::uint64_t bits_between(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t below_to = to == word_rows ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
  return below_to & ~((std::uint64_t{1} << from) - 1);
}

}  // namespace

void append_extent(std::vector<extent>& out, std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  if (!out.empty() && out.back().first + out.back().count == first)
    out.back().count += count;
  else
    out.push_back({first, count});
}

row_set::row_set(std::uint64_t rows) : rows_(rows), words_(words_for(rows), ~std::uint64_t{0}) {
  if (rows % word_rows) words_.back() = bits_between(0, rows % word_rows);
  before_.reserve(groups_for(rows) + 1);
}

std::size_t row_set::bytes_for(std::uint64_t rows) noexcept {
  return static_cast<std::size_t>(words_for(rows) + groups_for(rows) + 1) * sizeof(std::uint64_t);
}

void row_set::keep_only(const std::vector<extent>& ranges) {
  std::vector<std::uint64_t> kept(words_.size(), 0);
  for (const extent& range : ranges) {
    const std::uint64_t end = range.first + range.count;
    for (std::uint64_t row = range.first; row < end;) {
      const std::uint64_t next = std::min(end, (row / word_rows + 1) * word_rows);
      kept[row / word_rows] |= bits_between(row % word_rows, next - row / word_rows * word_rows);
      row = next;
    }
  }
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= kept[w];
}

void row_set::count() {
  before_.assign(1, 0);
  for (std::uint64_t group = 0; group < groups_for(rows_); ++group) {
    const std::uint64_t end = std::min<std::uint64_t>((group + 1) * group_words, words_.size());
    std::uint64_t chosen = before_.back();
    for (std::uint64_t w = group * group_words; w < end; ++w)
      chosen += static_cast<std::uint64_t>(std::popcount(words_[w]));
    before_.push_back(chosen);
  }
}

std::uint64_t row_set::row(std::uint64_t place) const noexcept {
  const auto after = std::upper_bound(before_.begin(), before_.end(), place);
  const auto group = static_cast<std::uint64_t>(after - before_.begin()) - 1;
  std::uint64_t left = place - before_[group], word = group * group_words;
  for (;; ++word) {
    const auto chosen = static_cast<std::uint64_t>(std::popcount(words_[word]));
    if (left < chosen) break;
    left -= chosen;
  }
  std::uint64_t bits = words_[word];
  for (; left > 0; --left) bits &= bits - 1;
  return word * word_rows + static_cast<std::uint64_t>(std::countr_zero(bits));
}

std::uint64_t row_set::chosen_before(std::uint64_t row) const noexcept {
  std::uint64_t chosen = before_[row / group_rows];
  const auto ones = [](std::uint64_t bits) { return static_cast<std::uint64_t>(std::popcount(bits)); };
  for (std::uint64_t w = row / group_rows * group_words; w < row / word_rows; ++w) chosen += ones(words_[w]);
  if (row % word_rows) chosen += ones(words_[row / word_rows] & bits_between(0, row % word_rows));
  return chosen;
}

void row_set::append(std::uint64_t first, std::uint64_t count, std::vector<extent>& out) const {
  if (count == 0) return;
  std::uint64_t at = row(first);
  for (;;) {
    // A stretch of chosen rows, then one of others.
    std::uint64_t end = at;
    while (count > 0) {
      const std::uint64_t rest = words_[end / word_rows] >> (end % word_rows);
      const auto ones = std::min<std::uint64_t>(static_cast<std::uint64_t>(std::countr_one(rest)), count);
      end += ones, count -= ones;
      if (ones == 0 || end % word_rows != 0 || end >= rows_) break;
    }
    append_extent(out, at, end - at);
    if (count == 0) return;
    at = end;
    while ((words_[at / word_rows] >> (at % word_rows)) == 0) at = (at / word_rows + 1) * word_rows;
    at += static_cast<std::uint64_t>(std::countr_zero(words_[at / word_rows] >> (at % word_rows)));
  }
}

std::uint64_t row_set::fingerprint() const noexcept {
  std::uint64_t mixed = gpu::mix(rows_);
  for (const std::uint64_t word : words_) mixed = gpu::mix(mixed ^ word);
  return mixed;
}

}  // namespace penstock::pipeline
