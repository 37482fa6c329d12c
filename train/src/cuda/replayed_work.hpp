#pragma once

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

void launch(cudaStream_t stream, const cudaKernelNodeParams& kernel);

/// A kernel whose arguments may differ from call to call, and launches after it that are the same every time: made as
/// they are the first time, recorded then, and replayed as one graph from the second time on, with the kernel as its
/// first node. On the default stream, and on one that is being captured, they are always made as they are.
class replayed_work {
 public:
  void run(cudaStream_t stream, const cudaKernelNodeParams& first, const std::function<void()>& work);

 private:
  void record(cudaStream_t stream, const cudaKernelNodeParams& first, const std::function<void()>& work);

  handle<graph_template_traits> recorded_;  // its nodes name those of graph_
  cudaGraphNode_t first_ = nullptr;
  handle<graph_traits> graph_;
};

}  // namespace penstock::train::cuda
