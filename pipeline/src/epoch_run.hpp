#pragma once

#include "ground.hpp"
#include "handover.hpp"
#include "schedule.hpp"
#include "stamps.hpp"
#include "statistics.hpp"

namespace penstock::pipeline {

/// One run: a range of epochs on its way. Shared by the threads and by the batches that are held.
struct epoch_run {
  epoch_run(const ground& on, const schedule& what, consumer_help* help)
      : plan(what),
        between(on.device(), on.sizes.watchful, help, on.parts->faults),
        times(blocks_on_their_way(on.sizes), statistics::way_of(on)) {}

  schedule plan;
  handover between;
  stamps times;

 private:
  static std::size_t blocks_on_their_way(const geometry& g) {
    return g.slots + g.images + static_cast<std::size_t>(g.ring_rows / g.block_rows) + 8;
  }
};

}  // namespace penstock::pipeline
