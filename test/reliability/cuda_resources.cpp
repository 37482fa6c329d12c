// The linker gives calls of NAME to __wrap_NAME, and those of __real_NAME to the CUDA runtime (CMakeLists.txt has the
// list).
#include "cuda_resources.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace penstock::test {
namespace {

class given_out {
 public:
  void add(const void* what, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[what] = bytes;
  }
  void remove(const void* what) {
    const std::lock_guard lock(mutex_);
    bytes_.erase(what);
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return bytes_.size();
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [what, bytes] : bytes_) sum += bytes;
    return sum;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::size_t> bytes_;
};

// Never destroyed: what is static elsewhere may give back later.
given_out& device_memory() {
  static auto* const all = new given_out;
  return *all;
}
given_out& pinned_memory() {
  static auto* const all = new given_out;
  return *all;
}
given_out& objects() {
  static auto* const all = new given_out;
  return *all;
}

}  // namespace

cuda_resources cuda_held_now() { return {device_memory().bytes(), pinned_memory().bytes(), objects().count()}; }

}  // namespace penstock::test

using namespace penstock::test;

extern "C" {

cudaError_t __real_cudaMalloc(void** address, std::size_t bytes);
cudaError_t __real_cudaFree(void* address);
cudaError_t __real_cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
cudaError_t __real_cudaFreeHost(void* address);
cudaError_t __real_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t __real_cudaStreamDestroy(cudaStream_t stream);
cudaError_t __real_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t __real_cudaEventDestroy(cudaEvent_t event);

cudaError_t __wrap_cudaMalloc(void** address, std::size_t bytes) {
  const auto code = __real_cudaMalloc(address, bytes);
  if (code == cudaSuccess) device_memory().add(*address, bytes);
  return code;
}
cudaError_t __wrap_cudaFree(void* address) {
  device_memory().remove(address);
  return __real_cudaFree(address);
}
cudaError_t __wrap_cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  const auto code = __real_cudaHostAlloc(address, bytes, flags);
  if (code == cudaSuccess) pinned_memory().add(*address, bytes);
  return code;
}
cudaError_t __wrap_cudaFreeHost(void* address) {
  pinned_memory().remove(address);
  return __real_cudaFreeHost(address);
}
cudaError_t __wrap_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const auto code = __real_cudaStreamCreateWithPriority(stream, flags, priority);
  if (code == cudaSuccess) objects().add(*stream, 0);
  return code;
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
  objects().remove(stream);
  return __real_cudaStreamDestroy(stream);
}
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const auto code = __real_cudaEventCreateWithFlags(event, flags);
  if (code == cudaSuccess) objects().add(*event, 0);
  return code;
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) {
  objects().remove(event);
  return __real_cudaEventDestroy(event);
}

}  // extern "C"
