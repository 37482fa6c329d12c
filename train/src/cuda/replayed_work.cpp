#include "replayed_work.hpp"

#include "check.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <cstddef>

namespace penstock::train::cuda {
namespace {

// A full device may have room again after some steps; one that has none is asked no more than this.
constexpr int most_attempts = 3;

bool can_be_recorded(gpu::stream_ref stream) {
  if (stream.native() == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code =
      result_of(stream, "cudaStreamIsCapturing", [&] { return cudaStreamIsCapturing(stream.native(), &status); });
  check(code, "asking whether a stream is captured");
  return status == cudaStreamCaptureStatusNone;
}

/// The one node that all others follow.
cudaGraphNode_t first_of(gpu::stream_ref stream, cudaGraph_t graph) {
  std::size_t count = 0;
  cudaGraphNode_t node = nullptr;
  const auto ask = [&](cudaGraphNode_t* to) {
    const cudaError_t code =
        result_of(stream, "cudaGraphGetRootNodes", [&] { return cudaGraphGetRootNodes(graph, to, &count); });
    check(code, "looking at a recorded step");
  };
  ask(nullptr);
  if (count != 1) throw gpu::error(fmt::format("a recorded step begins with {} nodes, and not with one", count));
  ask(&node);
  return node;
}

/// Takes the stream out of a recording of its own that went wrong.
void end_capture(cudaStream_t stream) noexcept {
  cudaGraph_t left = nullptr;
  cudaStreamEndCapture(stream, &left);
  if (left != nullptr) cudaGraphDestroy(left);
}

}  // namespace

void launch(gpu::stream_ref stream, const cudaKernelNodeParams& kernel) {
  const cudaError_t code = result_of(stream, "cudaLaunchKernel", [&] {
    return cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes,
                            stream.native());
  });
  check(code, "launching what a pass begins with");
}

void replayed_work::run(gpu::stream_ref stream, const cudaKernelNodeParams& first, const std::function<void()>& work) {
  const bool recordable = can_be_recorded(stream);
  if (recordable && graph_) return replay(stream, first);
  // The first time as they are, so that kernels are loaded and algorithms chosen; recorded at once, so that nothing is
  // left to be allocated later.
  launch(stream, first);
  work();
  if (!recordable || failed_attempts_ == most_attempts) return;
  try {
    record(stream, first, work);
  } catch (...) {
    // The work itself is done: a caller that is told of an error would do it again.
    recorded_.reset();
    ++failed_attempts_;
    cudaGetLastError();  // an error of the device as such comes again with whatever is asked for next
  }
}

void replayed_work::replay(gpu::stream_ref stream, const cudaKernelNodeParams& first) {
  // What was launched before keeps the arguments that it had.
  const cudaError_t set = result_of(stream, "cudaGraphExecKernelNodeSetParams",
                                    [&] { return cudaGraphExecKernelNodeSetParams(graph_.native(), first_, &first); });
  check(set, "giving a recorded step its rows");
  const cudaError_t launched =
      result_of(stream, "cudaGraphLaunch", [&] { return cudaGraphLaunch(graph_.native(), stream.native()); });
  check(launched, "replaying a step");
}

void replayed_work::record(gpu::stream_ref stream, const cudaKernelNodeParams& first,
                           const std::function<void()>& work) {
  const cudaError_t begun = result_of(stream, "cudaStreamBeginCapture", [&] {
    return cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal);
  });
  check(begun, "recording a step");
  cudaGraph_t native = nullptr;
  try {
    launch(stream, first);
    work();
    const cudaError_t ended =
        result_of(stream, "cudaStreamEndCapture", [&] { return cudaStreamEndCapture(stream.native(), &native); });
    check(ended, "recording a step");
  } catch (...) {
    end_capture(stream.native());
    throw;
  }
  recorded_.reset(native);
  first_ = first_of(stream, native);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = result_of(stream, "cudaGraphInstantiateWithFlags",
                                     [&] { return cudaGraphInstantiateWithFlags(&executable, native, 0); });
  check(made, "preparing a recorded step");
  graph_.reset(executable);
}

}  // namespace penstock::train::cuda
