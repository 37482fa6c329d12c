#include "strided_read.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

// A gap that is cheaper to read than to seek over.
constexpr std::uint64_t small_span_bytes = 64 << 10;
constexpr std::uint64_t most_bytes_per_wanted = 4;

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
    return;
  }
  flush();
  offset_ = offset;
  out_ = out;
}

void merged_reads::flush() {
  if (!out_.empty()) read_now(offset_, out_);
  out_ = {};
}

void merged_reads::read_now(std::uint64_t offset, std::span<std::byte> out) {
  const stopwatch watch(count_.read_nanoseconds);
  file_.read(offset, out, bounce_);
  count_.stored_bytes.fetch_add(out.size(), std::memory_order_relaxed);
}

void read_stored(const stored_box& stored, std::byte* out, const extents& out_strides, std::span<std::byte> buffer,
                 merged_reads& reads) {
  const auto plan = plan_runs(stored.count, stored.rank, stored.strides, out_strides, stored.value_bytes);
  if (plan.loops == 0) return reads.add(stored.offset, {out, plan.run_bytes});

  std::uint64_t span = stored.value_bytes, wanted = stored.value_bytes;
  for (std::size_t k = 0; k < stored.rank; ++k) {
    span += (stored.count[k] - 1) * stored.strides[k];
    wanted *= stored.count[k];
  }
  if (span <= buffer.size() && span <= std::max(small_span_bytes, most_bytes_per_wanted * wanted)) {
    reads.read_now(stored.offset, buffer.first(span));
    return copy_runs(plan, buffer.data(), out);
  }
  const auto axis = widest_axis(stored);
  auto first = stored, second = stored;
  first.count[axis] = stored.count[axis] / 2;
  second.count[axis] = stored.count[axis] - first.count[axis];
  second.offset += first.count[axis] * stored.strides[axis];
  read_stored(first, out, out_strides, buffer, reads);
  read_stored(second, out + first.count[axis] * out_strides[axis], out_strides, buffer, reads);
}

}  // namespace penstock::io
