#pragma once

#include <penstock/pipeline/description.hpp>

#include <string>
#include <vector>

namespace penstock::pipeline {

/// What a description is made of.
struct description::parts {
  source from;
  order_options how;
  std::vector<host_transform> host_transforms;
  std::vector<device_transform> device_transforms;
  shard_options share;
  batch_options batch;
  transport_options transport;
  trace_options trace;
  fault_seam faults;
  std::string block_reason, slots_reason;  ///< of `transport`, where they were measured
};

}  // namespace penstock::pipeline
