#include "strided_read.hpp"

#include "failure.hpp"
#include "fast_copy.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

// A gap that is cheaper to read than to seek over.
constexpr std::uint64_t small_span_bytes = 64 << 10;
constexpr std::uint64_t most_bytes_per_wanted = 4;

// Pieces that stay in the second-level cache on their way.
constexpr std::size_t detour_bytes = std::size_t{128} << 10;

std::size_t widest_axis(const stored_box& b) {
  std::size_t widest = b.rank;
  for (std::size_t k = 0; k < b.rank; ++k)
    if (b.count[k] > 1 && (widest == b.rank || b.strides[k] > b.strides[widest])) widest = k;
  return widest;
}

}  // namespace

void merged_reads::add(std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  if (!out_.empty() && offset == offset_ + out_.size() && out.data() == out_.data() + out_.size()) {
    out_ = {out_.data(), out_.size() + out.size()};
    if (rows_) added_rows_ = both(*added_rows_, *rows_);
    return;
  }
  flush();
  offset_ = offset;
  out_ = out;
  added_rows_ = rows_;
}

void merged_reads::flush() {
  if (out_.empty()) return;
  try {
    read_added();
  } catch (failure& e) {
    if (!e.rows) e.rows = added_rows_;
    throw;
  }
  out_ = {};
}

void merged_reads::read_added() {
  if (detour_pays())
    read_by_detour();
  else
    read_now(offset_, out_);
}

/// Reads around the page cache are copied anyhow.
bool merged_reads::detour_pays() const noexcept {
  return copies_slowly(out_.data(), offset_) && out_.size() >= detour_bytes &&
         scratch_.stored(offset_).size() >= detour_bytes && scratch_.bounce().empty();
}

void merged_reads::read_by_detour() {
  for (std::size_t done = 0; done < out_.size(); done += detour_bytes) {
    const auto to = out_.subspan(done, std::min(detour_bytes, out_.size() - done));
    const auto piece = scratch_.stored(offset_ + done).first(to.size());
    read_now(offset_ + done, piece);
    fast_copy(to.data(), piece.data(), piece.size());
  }
}

void merged_reads::read_now(std::uint64_t offset, std::span<std::byte> out) {
  const stopwatch watch(count_.read_nanoseconds);
  file_.read(offset, out, scratch_.bounce());
  count_.stored_bytes.fetch_add(out.size(), std::memory_order_relaxed);
}

void read_stored(const stored_box& stored, std::byte* out, const extents& out_strides, const scratch& s,
                 merged_reads& reads) {
  const auto plan = plan_runs(stored.count, stored.rank, stored.strides, out_strides, stored.value_bytes);
  if (plan.loops == 0) return reads.add(stored.offset, {out, plan.run_bytes});

  std::uint64_t span = stored.value_bytes, wanted = stored.value_bytes;
  for (std::size_t k = 0; k < stored.rank; ++k) {
    span += (stored.count[k] - 1) * stored.strides[k];
    wanted *= stored.count[k];
  }
  const auto buffer = s.stored(stored.offset);
  if (span <= buffer.size() && span <= std::max(small_span_bytes, most_bytes_per_wanted * wanted)) {
    reads.read_now(stored.offset, buffer.first(span));
    return copy_runs(plan, buffer.data(), out);
  }
  const auto axis = widest_axis(stored);
  auto first = stored, second = stored;
  first.count[axis] = stored.count[axis] / 2;
  second.count[axis] = stored.count[axis] - first.count[axis];
  second.offset += first.count[axis] * stored.strides[axis];
  read_stored(first, out, out_strides, s, reads);
  read_stored(second, out + first.count[axis] * out_strides[axis], out_strides, s, reads);
}

}  // namespace penstock::io
