#include "box.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::io {
namespace {

/// Calls `f(source offset, target offset)` for each run, outermost loop slowest.
template <class F>
void for_each_run(const run_plan& plan, F&& f) {
  std::array<std::uint64_t, max_rank + 1> at{};
  std::uint64_t source = 0, target = 0;
  for (;;) {
    f(source, target);
    std::size_t k = 0;
    for (; k < plan.loops; ++k) {
      source += plan.source_step[k];
      target += plan.target_step[k];
      if (++at[k] < plan.count[k]) break;
      source -= plan.source_step[k] * plan.count[k];
      target -= plan.target_step[k] * plan.count[k];
      at[k] = 0;
    }
    if (k == plan.loops) return;
  }
}

template <std::size_t Bytes>
void copy_fixed(const run_plan& plan, const std::byte* source, std::byte* target) {
  for_each_run(plan, [&](std::uint64_t s, std::uint64_t t) { std::memcpy(target + t, source + s, Bytes); });
}

}  // namespace

bool box::empty() const noexcept {
  return std::any_of(count.begin(), count.begin() + static_cast<std::ptrdiff_t>(rank), [](auto n) { return n == 0; });
}

std::uint64_t box::values() const noexcept {
  std::uint64_t n = 1;
  for (std::size_t k = 0; k < rank; ++k) n *= count[k];
  return n;
}

box intersection(const box& a, const box& b) noexcept {
  box both;
  both.rank = a.rank;
  for (std::size_t k = 0; k < a.rank; ++k) {
    const auto first = std::max(a.start[k], b.start[k]);
    const auto end = std::min(a.start[k] + a.count[k], b.start[k] + b.count[k]);
    both.start[k] = first;
    both.count[k] = end > first ? end - first : 0;
  }
  return both;
}

extents packed_strides(const extents& count, std::size_t rank, std::uint64_t value_bytes) noexcept {
  extents strides{};
  for (std::size_t k = rank; k-- > 0; value_bytes *= count[k]) strides[k] = value_bytes;
  return strides;
}

run_plan plan_runs(const extents& count, std::size_t rank, const extents& source_strides, const extents& target_strides,
                   std::uint64_t value_bytes) noexcept {
  run_plan plan;
  plan.run_bytes = value_bytes;
  for (std::size_t k = rank; k-- > 0;) {
    if (count[k] == 1) continue;
    const auto s = source_strides[k], t = target_strides[k];
    if (plan.loops == 0 && s == plan.run_bytes && t == plan.run_bytes) {
      plan.run_bytes *= count[k];
      continue;
    }
    if (plan.loops > 0) {
      const auto last = plan.loops - 1;
      if (s == plan.source_step[last] * plan.count[last] && t == plan.target_step[last] * plan.count[last]) {
        plan.count[last] *= count[k];
        continue;
      }
    }
    plan.count[plan.loops] = count[k];
    plan.source_step[plan.loops] = s;
    plan.target_step[plan.loops++] = t;
  }
  return plan;
}

void add_loop(run_plan& plan, std::uint64_t count, std::uint64_t source_step, std::uint64_t target_step) noexcept {
  if (count == 1) return;
  std::size_t k = plan.loops++;
  for (; k > 0 && plan.target_step[k - 1] > target_step; --k) {
    plan.count[k] = plan.count[k - 1];
    plan.source_step[k] = plan.source_step[k - 1];
    plan.target_step[k] = plan.target_step[k - 1];
  }
  plan.count[k] = count;
  plan.source_step[k] = source_step;
  plan.target_step[k] = target_step;
}

void copy_runs(const run_plan& plan, const std::byte* source, std::byte* target) noexcept {
  switch (plan.run_bytes) {
    case 1: return copy_fixed<1>(plan, source, target);
    case 2: return copy_fixed<2>(plan, source, target);
    case 4: return copy_fixed<4>(plan, source, target);
    case 8: return copy_fixed<8>(plan, source, target);
    case 16: return copy_fixed<16>(plan, source, target);
    case 32: return copy_fixed<32>(plan, source, target);
    case 64: return copy_fixed<64>(plan, source, target);
    default:
      for_each_run(plan,
                   [&](std::uint64_t s, std::uint64_t t) { std::memcpy(target + t, source + s, plan.run_bytes); });
  }
}

void fill_box(const extents& count, std::size_t rank, const extents& target_strides, std::span<const std::byte> value,
              std::byte* target) noexcept {
  const auto plan = plan_runs(count, rank, target_strides, target_strides, value.size());
  const bool same = std::all_of(value.begin(), value.end(), [&](std::byte b) { return b == value.front(); });
  for_each_run(plan, [&](std::uint64_t, std::uint64_t at) {
    if (same) {
      std::memset(target + at, static_cast<int>(value.front()), plan.run_bytes);
      return;
    }
    for (std::uint64_t done = 0; done < plan.run_bytes; done += value.size())
      std::memcpy(target + at + done, value.data(), value.size());
  });
}

void zero_box(const extents& count, std::size_t rank, const extents& target_strides, std::uint64_t value_bytes,
              std::byte* target) noexcept {
  const auto plan = plan_runs(count, rank, target_strides, target_strides, value_bytes);
  for_each_run(plan, [&](std::uint64_t, std::uint64_t at) { std::memset(target + at, 0, plan.run_bytes); });
}

}  // namespace penstock::io
