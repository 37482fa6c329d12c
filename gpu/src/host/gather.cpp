#include "../gather_plan.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>

#include "../convert.hpp"
#include "work.hpp"

namespace penstock::gpu::host {
namespace {

// Moves `elements` that are contiguous in both memories. One function for each pair of types and byte order, so that
// the compiler can vectorise its loop; one parallel loop around them all.
using mover = void (*)(const gather_plan& plan, const std::byte* from, std::byte* to, std::uint64_t elements);

void copy_bytes(const gather_plan& plan, const std::byte* from, std::byte* to, std::uint64_t elements) {
  std::memcpy(to, from, elements * size_of(plan.from));
}

template <class Word>
void swap_bytes(const gather_plan&, const std::byte* from, std::byte* to, std::uint64_t elements) {
  const auto* in = reinterpret_cast<const Word*>(from);
  auto* out = reinterpret_cast<Word*>(to);
  for (std::uint64_t e = 0; e < elements; ++e) out[e] = convert::byte_swapped(in[e]);
}

template <class From, class To, bool Swapped, bool Plain>
void convert_elements(const gather_plan& plan, const std::byte* from, std::byte* to, std::uint64_t elements) {
  using affine = convert::affine<From, To>;
  const affine arithmetic{static_cast<typename affine::work>(plan.arithmetic.scale),
                          static_cast<typename affine::work>(plan.arithmetic.shift)};
  const auto* in = reinterpret_cast<const From*>(from);
  auto* out = reinterpret_cast<To*>(to);
  for (std::uint64_t e = 0; e < elements; ++e) {
    const From x = Swapped ? convert::byte_swapped(in[e]) : in[e];
    if constexpr (Plain)
      out[e] = convert::cast<To>(x);
    else
      out[e] = arithmetic(x);
  }
}

template <class From, class To>
mover converting_mover(bool swapped, bool plain) {
  if (swapped) return plain ? convert_elements<From, To, true, true> : convert_elements<From, To, true, false>;
  return plain ? convert_elements<From, To, false, true> : convert_elements<From, To, false, false>;
}

mover raw_mover(const gather_plan& plan) {
  if (!plan.swapped) return copy_bytes;
  switch (size_of(plan.from)) {
    case 2: return swap_bytes<std::uint16_t>;
    case 4: return swap_bytes<std::uint32_t>;
    default: return swap_bytes<std::uint64_t>;
  }
}

mover mover_of(const gather_plan& plan) {
  if (plan.is_raw()) return raw_mover(plan);
  return visit_type(plan.from, [&](auto from) {
    return visit_type(plan.to, [&](auto to) -> mover {
      if constexpr (converts<decltype(from), decltype(to)>)
        return converting_mover<decltype(from), decltype(to)>(plan.swapped, plan.arithmetic.is_plain());
      else
        return nullptr;  // check_gather() let no such pair through
    });
  });
}

// A task moves about this much: enough to pay for its dispatch, little enough to share out a block.
constexpr std::uint64_t task_bytes = std::uint64_t{128} << 10;

// Drawn rows lie anywhere, where the processor cannot guess them: ask for the next one while this one moves.
void prefetch(const std::byte* row, std::uint64_t row_bytes) {
  constexpr std::uint64_t line_bytes = 64, most_bytes = 2048;
  for (std::uint64_t b = 0; b < std::min(row_bytes, most_bytes); b += line_bytes) __builtin_prefetch(row + b);
}

void move_drawn(const gather_plan& plan, mover move, std::uint64_t first, std::uint64_t end) {
  const std::byte* from = plan.source_row(first);
  for (std::uint64_t k = first; k != end; ++k) {
    const std::byte* const next = k + 1 == end ? nullptr : plan.source_row(k + 1);
    if (next != nullptr) prefetch(next, plan.source_row_bytes);
    move(plan, from, plan.target_row(k), plan.elements);
    from = next;
  }
}

void move_in_order(const gather_plan& plan, mover move, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t k = first; k != end;) {
    const std::uint64_t adjacent = plan.adjacent_rows(k, end - k);
    move(plan, plan.source_row(k), plan.target_row(k), adjacent * plan.elements);
    k += adjacent;
  }
}

}  // namespace

void gather(const gather_plan& plan) {
  const mover move = mover_of(plan);
  const auto move_rows = [&](const tbb::blocked_range<std::uint64_t>& rows) {
    if (plan.draw.is_identity())
      move_in_order(plan, move, rows.begin(), rows.end());
    else
      move_drawn(plan, move, rows.begin(), rows.end());
  };
  const std::uint64_t row_bytes = std::max(plan.source_row_bytes, plan.target_row_bytes);
  const std::uint64_t grain = std::max<std::uint64_t>(1, task_bytes / row_bytes);
  if (plan.count <= grain) return move_rows({0, plan.count});
  tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, plan.count, grain), move_rows);
}

}  // namespace penstock::gpu::host
