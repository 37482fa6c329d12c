#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

namespace penstock::gpu::cuda {

/// How a kernel gets to its stream.
class kernel_launch {
 public:
  virtual ~kernel_launch() = default;
  /// As cudaLaunchKernel.
  virtual cudaError_t operator()(const void* kernel, unsigned blocks, unsigned threads, void** arguments) = 0;
};

/// By itself.
class plain_launch final : public kernel_launch {
 public:
  explicit plain_launch(cudaStream_t stream) noexcept : stream_(stream) {}
  cudaError_t operator()(const void* kernel, unsigned blocks, unsigned threads, void** arguments) override;

 private:
  cudaStream_t stream_;
};

/// A graph of one kernel, for each kernel that was launched so far.
struct kernel_graphs {
  struct one {
    const void* kernel = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    cudaGraphExec_t executable = nullptr;
  };

  kernel_graphs() = default;
  kernel_graphs(const kernel_graphs&) = delete;
  kernel_graphs& operator=(const kernel_graphs&) = delete;
  ~kernel_graphs();

  std::vector<one> all;
};

/// As a graph, which is given the arguments each time.
class graph_launch final : public kernel_launch {
 public:
  graph_launch(cudaStream_t stream, kernel_graphs& graphs) noexcept : stream_(stream), graphs_(graphs) {}
  cudaError_t operator()(const void* kernel, unsigned blocks, unsigned threads, void** arguments) override;

 private:
  cudaStream_t stream_;
  kernel_graphs& graphs_;
};

}  // namespace penstock::gpu::cuda
