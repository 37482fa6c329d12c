#include "dealing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {

dealing::dealing(const shard_options& how, std::uint64_t rows, std::uint64_t run_rows)
    : shards_(how.shards),
      rank_(how.rank),
      ranks_(how.ranks ? how.ranks : how.shards),
      rows_(rows),
      run_rows_(std::max<std::uint64_t>(run_rows, 1)) {
  if (shards_ == 0) throw std::invalid_argument("an order is dealt to 0 shards; it needs one at least");
  if (shards_ % ranks_ != 0)
    throw std::invalid_argument(fmt::format(
        "{} shards cannot be served by {} processes alike; the number of processes must divide that of shards", shards_,
        ranks_));
  if (rank_ >= ranks_)
    throw std::invalid_argument(fmt::format("there is no rank {} of {}; ranks count from 0", rank_, ranks_));
}

dealing::stretch dealing::at(std::uint64_t lane, std::uint64_t row, std::uint64_t rest_from) const noexcept {
  const std::uint64_t shard = rank_ + lane * ranks_;
  const std::uint64_t in_rounds = rounds() * run_rows_;
  if (row < in_rounds) {
    const std::uint64_t offset = row % run_rows_;
    return {(row / run_rows_ * shards_ + shard) * run_rows_ + offset, run_rows_ - offset};
  }
  const std::uint64_t rest = rows_ - in_rounds * shards_;
  const std::uint64_t least = rest / shards_, longer = rest % shards_;
  const std::uint64_t before = shard * least + std::min(shard, longer), own = least + (shard < longer);
  const std::uint64_t offset = row - in_rounds, of_rest = (before + offset + rest_from % rest) % rest;
  return {in_rounds * shards_ + of_rest, std::min(own - offset, rest - of_rest)};
}

}  // namespace penstock::pipeline
