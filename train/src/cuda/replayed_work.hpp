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

/// Launches that are the same every time: made as they are the first time, recorded then, and replayed as one graph
/// from the second time on. On the default stream, and on one that is being captured, they are always made as they are.
class replayed_work {
 public:
  void run(cudaStream_t stream, const std::function<void()>& work);

 private:
  static handle<graph_traits> record(cudaStream_t stream, const std::function<void()>& work);
  handle<graph_traits> graph_;
};

}  // namespace penstock::train::cuda
