#pragma once

#include "geometry.hpp"
#include "wiring.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/slot_ring.hpp>
#include <penstock/pipeline/description.hpp>

#include <memory>
#include <vector>

namespace penstock::pipeline {

/// What a built pipeline stands on, and what does not change any more: fields, sizes, order, readers, memory. Its
/// threads share it; each part of the memory is written by one of them at a time.
struct ground {
  std::shared_ptr<const description::parts> parts;
  wiring fields;
  geometry sizes;
  order rows;
  std::vector<io::row_reader> readers;
  std::shared_ptr<gpu::memory> memory;
  pipeline_plan plan;

  /// Start of a device field's ring (or of its piece memory, where it is not in a batch).
  std::vector<std::byte*> device_base;
  std::byte* slot_base = nullptr;
  std::byte* image_base = nullptr;     ///< on the host, the slots
  const std::uint8_t* mask = nullptr;  ///< batch_rows ones, then batch_rows zeros, on the device

  gpu::device device() const noexcept { return memory->device(); }
  std::byte* slot(std::uint64_t block) const noexcept {
    return sizes.slots ? slot_base + block % sizes.slots * sizes.slot_bytes : nullptr;
  }
  std::byte* ring_row(std::size_t field, std::uint64_t position) const noexcept {
    return device_base[field] + position % sizes.ring_rows * fields.device[field].row_bytes();
  }
  /// The conversion that begins at a host field, or none.
  std::size_t conversion_from(std::size_t host_field) const noexcept;
};

}  // namespace penstock::pipeline
