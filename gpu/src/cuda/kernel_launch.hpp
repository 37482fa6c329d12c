#pragma once

#include <penstock/handle.hpp>

#include <cuda_runtime_api.h>

#include <vector>

#include "../cuda_backend.hpp"
#include "call.hpp"

namespace penstock::gpu::cuda {

struct graph_traits {
  using native_type = cudaGraph_t;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type native) noexcept { cudaGraphDestroy(native); }
};
struct executable_graph_traits {
  using native_type = cudaGraphExec_t;
  static native_type empty() noexcept { return nullptr; }
  // What is in flight runs on.
  static void release(native_type native) noexcept { cudaGraphExecDestroy(native); }
};

/// A graph of one kernel, for each kernel that was launched so far.
struct kernel_graphs {
  struct one {
    const void* kernel = nullptr;
    handle<graph_traits> graph;
    cudaGraphNode_t node = nullptr;
    handle<executable_graph_traits> executable;
  };
  std::vector<one> all;
};

/// Launches a kernel on a stream as a graph, which is given the arguments each time; by itself where the stream is
/// captured.
struct kernel_launch {
  const caller& call;
  cudaStream_t stream;
  kernel_graphs& graphs;
  std::size_t bytes;  ///< that it writes, for the seam

  /// Arguments as for cudaLaunchKernel. Throws gpu::error.
  void operator()(const void* kernel, unsigned blocks, unsigned threads, void** arguments) const;

 private:
  bool is_captured() const;
  void launch_plainly(const cudaKernelNodeParams& node) const;
  kernel_graphs::one& prepared(const cudaKernelNodeParams& node) const;
};

}  // namespace penstock::gpu::cuda
