#pragma once

#include <penstock/gpu/stream.hpp>

namespace penstock::train {

/// Two streams beside the one that computes, for copies from and to pinned memory: a link carries both directions at
/// once. Faults of the stream that computes are asked by them too.
struct side_streams {
  explicit side_streams(gpu::stream_ref beside)
      : in(beside.device(), false, seam_of(beside)), out(beside.device(), false, seam_of(beside)) {}

  gpu::stream in;   ///< to the device
  gpu::stream out;  ///< from it

 private:
  /// The stream's owner keeps its seam alive.
  static fault_seam seam_of(gpu::stream_ref stream) { return {fault_seam(), stream.faults()}; }
};

}  // namespace penstock::train
