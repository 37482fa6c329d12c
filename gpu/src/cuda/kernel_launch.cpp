#include "kernel_launch.hpp"

#include <algorithm>
#include <utility>

namespace penstock::gpu::cuda {

void kernel_launch::operator()(const void* kernel, unsigned blocks, unsigned threads, void** arguments) const {
  cudaKernelNodeParams node{};
  node.func = const_cast<void*>(kernel);
  node.gridDim = dim3(blocks);
  node.blockDim = dim3(threads);
  node.kernelParams = arguments;
  if (is_captured()) return launch_plainly(node);
  const kernel_graphs::one& ready = prepared(node);
  call(
      "cudaGraphLaunch", [&] { return cudaGraphLaunch(ready.executable.native(), stream); }, bytes);
}

/// A stream that is captured takes kernels, and no graphs.
bool kernel_launch::is_captured() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  call("cudaStreamIsCapturing", [&] { return cudaStreamIsCapturing(stream, &status); });
  return status != cudaStreamCaptureStatusNone;
}

void kernel_launch::launch_plainly(const cudaKernelNodeParams& node) const {
  call(
      "cudaLaunchKernel",
      [&] { return cudaLaunchKernel(node.func, node.gridDim, node.blockDim, node.kernelParams, 0, stream); }, bytes);
}

/// The kernel's graph with these arguments. What was launched before keeps those that it had.
kernel_graphs::one& kernel_launch::prepared(const cudaKernelNodeParams& node) const {
  const auto known =
      std::ranges::find_if(graphs.all, [&](const kernel_graphs::one& each) { return each.kernel == node.func; });
  if (known != graphs.all.end()) {
    call("cudaGraphExecKernelNodeSetParams",
         [&] { return cudaGraphExecKernelNodeSetParams(known->executable.native(), known->node, &node); });
    return *known;
  }
  kernel_graphs::one made;
  made.kernel = node.func;
  cudaGraph_t graph = nullptr;
  call("cudaGraphCreate", [&] { return cudaGraphCreate(&graph, 0); });
  made.graph.reset(graph);
  call("cudaGraphAddKernelNode", [&] { return cudaGraphAddKernelNode(&made.node, graph, nullptr, 0, &node); });
  cudaGraphExec_t executable = nullptr;
  call("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&executable, graph, 0); });
  made.executable.reset(executable);
  return graphs.all.emplace_back(std::move(made));
}

}  // namespace penstock::gpu::cuda
