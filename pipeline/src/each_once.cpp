#include "each_once.hpp"

namespace penstock::pipeline {

row_sequence::stretch each_once::at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  if (!permuted_) return {position, rows_ - position};
  const std::uint64_t full = rows_ / run_rows_, tail = rows_ % run_rows_;
  const bool put_in = tail > 0 && last_ == last_run::is_put_in;
  const std::uint64_t tail_at = put_in ? key(seed_, epoch, purpose::tail, 0) % (full + 1) : full;
  const std::uint64_t tail_first = tail_at * run_rows_;
  if (position >= tail_first && position < tail_first + tail)
    return {full * run_rows_ + (position - tail_first), tail - (position - tail_first)};
  const std::uint64_t among_full = position < tail_first ? position : position - tail;
  const gpu::permutation runs(full, key(seed_, epoch, purpose::runs, 0));
  const std::uint64_t offset = among_full % run_rows_;
  return {runs(among_full / run_rows_) * run_rows_ + offset, run_rows_ - offset};
}

}  // namespace penstock::pipeline
