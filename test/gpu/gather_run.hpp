#pragma once

#include <penstock/gpu/gather.hpp>
#include <penstock/gpu/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace penstock::test {

/// The arguments of a gather, but for addresses.
struct gather_shape {
  gpu::gather_source source;
  gpu::gather_target target;
  std::uint64_t elements = 1;
  gpu::permutation draw;
  std::uint64_t first_source = 0;
  std::uint64_t first_target = 0;
  std::uint64_t count = 1;
  gpu::gather_arithmetic arithmetic;

  std::size_t target_bytes() const { return target.rows * elements * size_of(target.element); }
  std::size_t source_row_bytes() const { return elements * size_of(source.element); }
};

inline constexpr std::byte untouched{0xcc};

/// Runs the gather on `d` over a copy of `source` in its memory, into a ring that is `untouched` before. Gives the ring
/// back. Both lie `shift_bytes` behind an aligned address. 64 bytes around the ring must stay as they were, and a
/// gatherer that was given the first row before the whole must give the same ring: the result is empty where not.
inline std::vector<std::byte> run_gather(gpu::device d, gather_shape shape, std::span<const std::byte> source,
                                         std::size_t shift_bytes = 0) {
  constexpr std::size_t margin = 64;
  const std::size_t ring_bytes = shape.target_bytes() + 2 * margin + shift_bytes;
  const std::size_t source_bytes = source.size() + shift_bytes;
  gpu::ledger items;
  items.add(gpu::memory_kind::device, "source", source_bytes);
  items.add(gpu::memory_kind::device, "ring", ring_bytes);
  items.add(gpu::memory_kind::pinned, "host", std::max(source_bytes, ring_bytes));
  const gpu::memory memory(d, items);
  const gpu::stream stream(d);
  std::byte* const from = memory.at(gpu::memory_kind::device, "source").data() + shift_bytes;
  std::byte* const ring = memory.at(gpu::memory_kind::device, "ring").data();
  std::byte* const host = memory.at(gpu::memory_kind::pinned, "host").data();

  if (!source.empty()) std::memcpy(host, source.data(), source.size());
  copy(stream, from, host, source.size());
  stream.synchronize();  // the copies down use the same pinned bytes as the one up
  shape.source.base = from;
  shape.target.base = ring + margin + shift_bytes;
  const auto ring_after = [&](const auto& work) -> std::vector<std::byte> {
    fill(stream, ring, std::to_integer<int>(untouched), ring_bytes);
    work();
    copy(stream, host, ring, ring_bytes);
    stream.synchronize();
    const std::span<const std::byte> all(host, ring_bytes);
    for (const auto around : {all.first(margin + shift_bytes), all.last(margin)})
      for (const std::byte b : around)
        if (b != untouched) return {};
    const auto inside = all.subspan(margin + shift_bytes, shape.target_bytes());
    return {inside.begin(), inside.end()};
  };
  const auto ring_of = [&](std::initializer_list<std::uint64_t> counts) {
    return ring_after([&] {
      gpu::gatherer gather(stream);
      for (const std::uint64_t count : counts)
        gather(shape.source, shape.target, shape.elements, shape.draw, shape.first_source, shape.first_target, count,
               shape.arithmetic);
    });
  };
  const auto gathered = ring_of({shape.count});
  return ring_of({std::min<std::uint64_t>(shape.count, 1), shape.count}) == gathered ? gathered
                                                                                     : std::vector<std::byte>();
}

/// The bits of element `n`.
inline std::uint64_t bits_at(std::span<const std::byte> bytes, type element, std::size_t n) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + n * size_of(element), size_of(element));  // little-endian, as all that we run on
  return bits;
}

inline bool is_nan(type element, std::uint64_t bits) {
  switch (element) {
    case type::float16: return (bits & 0x7fff) > 0x7c00;
    case type::bfloat16: return (bits & 0x7fff) > 0x7f80;
    case type::float32: return (bits & 0x7fffffff) > 0x7f800000;
    case type::float64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default: return false;
  }
}

/// Equal bits, or two NaNs.
inline bool same_value(type element, std::uint64_t a, std::uint64_t b) {
  return a == b || (is_nan(element, a) && is_nan(element, b));
}

}  // namespace penstock::test
