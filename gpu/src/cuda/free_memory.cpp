#include "free_memory.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <memory>
#include <type_traits>

namespace penstock::gpu::cuda {
namespace {

struct library_deleter {
  void operator()(void* library) const noexcept { dlclose(library); }
};

// The driver's functions by name: linking libcuda would keep the program from starting where there is no driver.
class driver {
 public:
  driver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    complete_ = find(device_get_, "cuDeviceGet") && find(retain_, "cuDevicePrimaryCtxRetain") &&
                find(release_, "cuDevicePrimaryCtxRelease_v2") && find(push_, "cuCtxPushCurrent_v2") &&
                find(pop_, "cuCtxPopCurrent_v2") && find(memory_, "cuMemGetInfo_v2");
  }

  std::size_t free_bytes(int ordinal) const {
    CUdevice device = 0;
    CUcontext context = nullptr;
    if (!complete_ || device_get_(&device, ordinal) != CUDA_SUCCESS || retain_(&context, device) != CUDA_SUCCESS)
      return 0;
    std::size_t free = 0, total = 0;
    if (push_(context) == CUDA_SUCCESS) {
      if (memory_(&free, &total) != CUDA_SUCCESS) free = 0;
      pop_(&context);
    }
    release_(device);
    return free;
  }

 private:
  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_.get(), name));
    return function != nullptr;
  }

  std::unique_ptr<void, library_deleter> library_;
  bool complete_ = false;
  CUresult (*device_get_)(CUdevice*, int) = nullptr;
  CUresult (*retain_)(CUcontext*, CUdevice) = nullptr;
  CUresult (*release_)(CUdevice) = nullptr;
  CUresult (*push_)(CUcontext) = nullptr;
  CUresult (*pop_)(CUcontext*) = nullptr;
  CUresult (*memory_)(std::size_t*, std::size_t*) = nullptr;
};

}  // namespace

std::vector<std::size_t> free_memory_of_devices(int devices) {
  const driver driver;
  std::vector<std::size_t> bytes;
  for (int ordinal = 0; ordinal < devices; ++ordinal) bytes.push_back(driver.free_bytes(ordinal));
  return bytes;
}

}  // namespace penstock::gpu::cuda
