#include "projection.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::uint64_t most_steps = std::uint64_t{1} << 27;  // half a second, about
constexpr std::size_t most_compared = 256;                    // parts, each with each
constexpr std::uint64_t steps_to_find = 64;                   // along one axis

/// Where both selections have the same lengths along their axes, those of one index left out, the values of `from`
/// that `shown` are. Otherwise nothing.
std::optional<lattice> axis_by_axis(const lattice& shown, std::span<const index_blocks> from) {
  lattice found;
  found.axes = from;
  std::size_t t = 0;
  const auto skip_ones = [&] {
    while (t < shown.axes.size() && shown.axes[t].count == 1) ++t;
  };
  for (std::size_t k = 0; k < from.size(); ++k) {
    found.count[k] = 1;
    if (from[k].count == 1) continue;
    skip_ones();
    if (t == shown.axes.size() || shown.axes[t].count != from[k].count) return std::nullopt;
    found.first[k] = shown.first[t];
    found.count[k] = shown.count[t++];
  }
  skip_ones();
  return t == shown.axes.size() ? std::optional(found) : std::nullopt;
}

/// The first axis up to which no other part has an index in common with this one.
std::size_t alone_from(const selection& s, std::size_t part) {
  if (s.parts() == 1) return 0;
  if (s.parts() > most_compared) return s.rank() - 1;
  std::size_t axis = 0;
  for (std::size_t other = 0; other < s.parts(); ++other) {
    if (other == part) continue;
    std::size_t k = 0;
    for (; k + 1 < s.rank(); ++k) {
      const auto &a = s.axes(part)[k], &b = s.axes(other)[k];
      if (a.start >= b.start + b.count || b.start >= a.start + a.count) break;
    }
    axis = std::max(axis, k);
  }
  return axis;
}

/// Values of a selection that follow each other, by their numbers in it.
struct run {
  std::uint64_t first = 0, end = 0;
};

/// What is shown of one part: behind `axis` all of it, so that the indices along that follow each other.
struct shown_part {
  lattice values;
  std::size_t axis = 0;

  std::uint64_t runs() const noexcept {
    std::uint64_t n = 1;
    for (std::size_t k = 0; k < axis; ++k)
      if (__builtin_mul_overflow(n, values.count[k], &n)) return index_blocks::endless;
    return n;
  }
  std::uint64_t run_length() const noexcept {
    std::uint64_t n = 1;
    for (std::size_t k = axis; k < values.axes.size(); ++k) n *= values.count[k];
    return n;
  }
};

std::vector<shown_part> parts_within(const selection& target, const box& wanted) {
  std::vector<shown_part> all;
  for (std::size_t n = 0; n < target.parts(); ++n) {
    shown_part p{target.within(n, wanted)};
    if (p.values.empty()) continue;
    p.axis = target.rank() - 1;
    while (p.axis > 0 && p.values.count[p.axis] == p.values.axes[p.axis].count) --p.axis;
    p.axis = std::max(p.axis, alone_from(target, n));
    all.push_back(p);
  }
  return all;
}

template <class F>
void for_each_run(const selection& target, const shown_part& part, F&& f) {
  const auto length = part.run_length();
  extents at{};
  for (std::size_t k = part.axis + 1; k > 0;) {
    extents place{};
    for (std::size_t j = 0; j < target.rank(); ++j) place[j] = part.values.axes[j].at(part.values.first[j] + at[j]);
    const auto first = target.before(place);
    f(run{first, first + length});
    for (k = part.axis; k > 0 && ++at[k - 1] == part.values.count[k - 1]; --k) at[k - 1] = 0;
  }
}

/// Calls `f(start, count)` for boxes of what lies between two places in C order, both with it, where each axis has
/// `shape` places.
template <class F>
void for_each_box_between(const extents& first, const extents& last, const extents& shape, std::size_t rank, F&& f) {
  auto axes = rank;  // those behind are whole
  while (axes > 1 && first[axes - 1] == 0 && last[axes - 1] + 1 == shape[axes - 1]) --axes;
  const auto inner = axes - 1;
  std::size_t apart = 0;
  while (apart < inner && first[apart] == last[apart]) ++apart;
  const auto give = [&](const extents& before, std::size_t axis, std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    extents from{}, count = shape;
    for (std::size_t k = 0; k < axis; ++k) {
      from[k] = before[k];
      count[k] = 1;
    }
    from[axis] = start;
    count[axis] = end - start;
    f(from, count);
  };
  if (apart == inner) return give(first, inner, first[inner], last[inner] + 1);
  for (auto k = inner; k > apart; --k) give(first, k, first[k] + (k < inner), shape[k]);
  give(first, apart, first[apart] + 1, last[apart]);
  for (auto k = apart + 1; k <= inner; ++k) give(last, k, 0, last[k] + (k == inner));
}

/// Calls `visit` for the values of a selection that a run numbers.
void visit_run(const selection& from, const run& r, const std::function<void(const lattice&)>& visit) {
  const auto rank = from.rank();
  extents first{}, last{}, shape{};
  if (from.parts() == 1) {
    const auto axes = from.axes(0);
    auto a = r.first, b = r.end - 1;
    for (std::size_t k = rank; k > 0; --k) {
      shape[k - 1] = axes[k - 1].count;
      first[k - 1] = a % shape[k - 1];
      last[k - 1] = b % shape[k - 1];
      a /= shape[k - 1];
      b /= shape[k - 1];
    }
    return for_each_box_between(first, last, shape, rank, [&](const extents& start, const extents& count) {
      visit({axes, start, count});
    });
  }
  first = from.place(r.first);
  last = from.place(r.end - 1);
  for (std::size_t n = 0; n < from.parts(); ++n)
    for (std::size_t k = 0; k < rank; ++k) shape[k] = std::max(shape[k], from.axes(n)[k].start + from.axes(n)[k].count);
  for_each_box_between(first, last, shape, rank, [&](const extents& start, const extents& count) {
    for (std::size_t n = 0; n < from.parts(); ++n)
      if (const auto part = from.within(n, {rank, start, count}); !part.empty()) visit(part);
  });
}

bool takes_too_long(const selection& target, const std::vector<shown_part>& shown, const selection& from) {
  const auto rank = from.rank();
  std::uint64_t steps = target.parts() * target.rank() + from.parts() * rank;
  if (from.parts() > 1) steps += from.parts() * rank * rank * 2 * steps_to_find;
  std::uint64_t all = 0, mine = 0;
  for (const auto& part : shown)
    if (__builtin_mul_overflow(part.runs(), steps, &mine) || __builtin_add_overflow(all, mine, &all)) return true;
  return all > most_steps;
}

}  // namespace

bool project(const selection& target, const box& wanted, const selection& from,
             const std::function<void(const lattice&)>& visit) {
  const auto shown = parts_within(target, wanted);
  if (shown.empty()) return true;
  if (target.parts() == 1 && from.parts() == 1)
    if (const auto found = axis_by_axis(shown[0].values, from.axes(0))) return visit(*found), true;
  if (takes_too_long(target, shown, from)) return false;
  const auto all = *from.size();
  for (const auto& part : shown)
    for_each_run(target, part, [&](const run& r) {
      if (r.first < all) visit_run(from, {r.first, std::min(r.end, all)}, visit);
    });
  return true;
}

}  // namespace penstock::io
