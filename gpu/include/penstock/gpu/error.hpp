#pragma once

#include <penstock/error.hpp>

#include <source_location>
#include <string>

namespace penstock::gpu {

/// A device, its driver or its memory failed, or is not there.
class error : public penstock::error {
 public:
  explicit error(const std::string& sentence, int code = 0) : penstock::error(sentence), code_(code) {}
  /// The cudaError_t, or 0 where the failure is not CUDA's.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace penstock::gpu
