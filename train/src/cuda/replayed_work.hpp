#pragma once

#include <penstock/gpu/stream.hpp>
#include <penstock/handle.hpp>

#include <cuda_runtime_api.h>

#include <functional>

namespace penstock::train::cuda {

struct graph_traits {
  using native_type = cudaGraphExec_t;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type native) noexcept { cudaGraphExecDestroy(native); }
};

struct graph_template_traits {
  using native_type = cudaGraph_t;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type native) noexcept { cudaGraphDestroy(native); }
};

/// Asks the stream's seam, as all of replayed_work does before each call of the driver.
void launch(gpu::stream_ref stream, const cudaKernelNodeParams& kernel);

/// A kernel whose arguments may differ from call to call, and launches after it that are the same every time: made as
/// they are the first time, recorded then, and replayed as one graph from the second time on, with the kernel as its
/// first node. On the default stream, and on one that is being captured, they are always made as they are.
///
/// Where recording fails, as on a device whose memory is full, they have been made all the same, and are made as they
/// are at the next calls, too; the first of these try to record them again. So an error is one of work that was not, or
/// not wholly, asked for.
class replayed_work {
 public:
  void run(gpu::stream_ref stream, const cudaKernelNodeParams& first, const std::function<void()>& work);

 private:
  void replay(gpu::stream_ref stream, const cudaKernelNodeParams& first);
  void record(gpu::stream_ref stream, const cudaKernelNodeParams& first, const std::function<void()>& work);

  handle<graph_template_traits> recorded_;  // its nodes name those of graph_
  cudaGraphNode_t first_ = nullptr;
  handle<graph_traits> graph_;
  int failed_attempts_ = 0;
};

}  // namespace penstock::train::cuda
