#include "call.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <string_view>

namespace penstock::gpu::cuda {

void fail(const call_site& site, int ordinal, cudaError_t code) {
  cudaGetLastError();  // it is reported here: a user's own check need not find it again
  std::string_view file = site.where.file_name();
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  throw error(fmt::format("{} on cuda:{} failed: {} ({}, {}) [{}:{}]", site.name, ordinal, cudaGetErrorString(code),
                          cudaGetErrorName(code), static_cast<int>(code), file, site.where.line()),
              code);
}

caller::caller(int ordinal, fault_injector* faults) : ordinal_(ordinal), faults_(faults) {
  if (const auto code = cudaGetDevice(&previous_); code != cudaSuccess) fail("cudaGetDevice", ordinal, code);
  if (previous_ == ordinal) return;
  if (const auto code = cudaSetDevice(ordinal); code != cudaSuccess) fail("cudaSetDevice", ordinal, code);
}

caller::~caller() {
  if (previous_ != ordinal_) cudaSetDevice(previous_);
}

}  // namespace penstock::gpu::cuda
