#pragma once

#include <penstock/gpu/slot_ring.hpp>

#include <algorithm>
#include <cstdint>

namespace penstock::pipeline {

/// How many of the blocks [first, end), which have come out, go to the device in one copy: at most `most`, and as many
/// as lie one after another in slots and in free images (a block's number is that of its use of either). Precondition:
/// first < end, and an image is free. Pure.
inline std::uint64_t side_by_side(std::uint64_t most, std::uint64_t first, std::uint64_t end,
                                  const gpu::slot_ring& slots, const gpu::slot_ring& images) {
  if (slots.slot_bytes() != images.slot_bytes()) return 1;  // not all of a slot is copied: gaps lie between
  return std::min({most, end - first, images.slots() - images.in_use(), slots.slots() - first % slots.slots(),
                   images.slots() - first % images.slots()});
}

}  // namespace penstock::pipeline
