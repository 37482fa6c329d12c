#include "replayed_work.hpp"

#include "check.hpp"

namespace penstock::train::cuda {
namespace {

struct template_traits {
  using native_type = cudaGraph_t;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type native) noexcept { cudaGraphDestroy(native); }
};

bool can_be_recorded(cudaStream_t stream) {
  if (stream == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "asking whether a stream is captured");
  return status == cudaStreamCaptureStatusNone;
}

}  // namespace

void replayed_work::run(cudaStream_t stream, const std::function<void()>& work) {
  if (!can_be_recorded(stream)) return work();
  if (graph_) return check(cudaGraphLaunch(graph_.native(), stream), "replaying a step");
  // The first time as they are, so that kernels are loaded and algorithms chosen; recorded at once, so that nothing is
  // left to be allocated later.
  work();
  graph_ = record(stream, work);
}

handle<graph_traits> replayed_work::record(cudaStream_t stream, const std::function<void()>& work) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t native = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &native);
    if (native != nullptr) cudaGraphDestroy(native);
    throw;
  }
  check(cudaStreamEndCapture(stream, &native), "recording a step");
  const handle<template_traits> recorded(native);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, native, 0), "preparing a recorded step");
  return handle<graph_traits>(executable);
}

}  // namespace penstock::train::cuda
