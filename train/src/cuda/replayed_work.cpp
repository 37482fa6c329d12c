#include "replayed_work.hpp"

#include "check.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <cstddef>

namespace penstock::train::cuda {
namespace {

bool can_be_recorded(cudaStream_t stream) {
  if (stream == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "asking whether a stream is captured");
  return status == cudaStreamCaptureStatusNone;
}

/// The one node that all others follow.
cudaGraphNode_t first_of(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetRootNodes(graph, nullptr, &count), "looking at a recorded step");
  if (count != 1) throw gpu::error(fmt::format("a recorded step begins with {} nodes, and not with one", count));
  cudaGraphNode_t node = nullptr;
  check(cudaGraphGetRootNodes(graph, &node, &count), "looking at a recorded step");
  return node;
}

}  // namespace

void launch(cudaStream_t stream, const cudaKernelNodeParams& kernel) {
  check(cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes,
                         stream),
        "launching what a pass begins with");
}

void replayed_work::run(cudaStream_t stream, const cudaKernelNodeParams& first, const std::function<void()>& work) {
  if (can_be_recorded(stream) && graph_) {
    // What was launched before keeps the arguments that it had.
    check(cudaGraphExecKernelNodeSetParams(graph_.native(), first_, &first), "giving a recorded step its rows");
    return check(cudaGraphLaunch(graph_.native(), stream), "replaying a step");
  }
  // The first time as they are, so that kernels are loaded and algorithms chosen; recorded at once, so that nothing is
  // left to be allocated later.
  launch(stream, first);
  work();
  if (can_be_recorded(stream)) record(stream, first, work);
}

void replayed_work::record(cudaStream_t stream, const cudaKernelNodeParams& first, const std::function<void()>& work) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t native = nullptr;
  try {
    launch(stream, first);
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &native);
    if (native != nullptr) cudaGraphDestroy(native);
    throw;
  }
  check(cudaStreamEndCapture(stream, &native), "recording a step");
  recorded_.reset(native);
  first_ = first_of(native);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, native, 0), "preparing a recorded step");
  graph_.reset(executable);
}

}  // namespace penstock::train::cuda
