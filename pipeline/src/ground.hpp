#pragma once

#include "damage_log.hpp"
#include "geometry.hpp"
#include "wiring.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/row_ring.hpp>
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
  bool tries_readers = false;  ///< how many blocks are read at once is found while a run goes on

  std::vector<gpu::row_ring> rings;    ///< by device field; of one block where it is not in a batch
  gpu::slot_ring slots;                ///< addresses of blocks on the host
  gpu::slot_ring images;               ///< of their copies on the device; on the host, the slots
  std::shared_ptr<damage_log> damage;  ///< null where damage ends the run
  const std::uint8_t* mask = nullptr;  ///< batch_rows ones, then batch_rows zeros, on the device

  gpu::device device() const noexcept { return memory->device(); }
  /// The conversion that begins at a host field, or none.
  std::size_t conversion_from(std::size_t host_field) const noexcept;
};

}  // namespace penstock::pipeline
