#include "kernel_trace.hpp"

#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace penstock::benchmark {
namespace {

// CUPTI calls functions without an argument of ours: what they fill cannot but be global.
std::vector<traced_kernel>& noted() {
  static std::vector<traced_kernel> kernels;
  return kernels;
}

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "an unknown error";
  cuptiGetResultString(result, &text);
  throw std::runtime_error(std::string(what) + " failed: CUPTI says " + text);
}

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, buffer_bytes));
  *bytes = *buffer != nullptr ? buffer_bytes : 0;
  *most_records = 0;
}

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : mangled;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      noted().push_back({readable(kernel.name), kernel.start, kernel.end});
    }
  std::free(buffer);
}

}  // namespace

void start_trace() {
  noted().clear();
  check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "tracing kernels");
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "tracing kernels");
}

std::vector<traced_kernel> end_trace() {
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "tracing kernels");
  check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "tracing kernels");
  std::vector<traced_kernel> kernels = std::move(noted());
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const traced_kernel& a, const traced_kernel& b) { return a.begin_ns < b.begin_ns; });
  return kernels;
}

}  // namespace penstock::benchmark
