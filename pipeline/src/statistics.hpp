#pragma once

#include "meters.hpp"

#include <array>
#include <mutex>
#include <vector>

namespace penstock::pipeline {

/// What a pipeline did since it was built; what its report is made of. The meters are thread-safe.
struct statistics {
  explicit statistics(std::size_t host_transforms) : transforms(host_transforms) {}

  meter read;
  std::vector<meter> transforms;
  meter copy;            ///< issuing copies; bytes are those of the copies
  meter deliver;         ///< issuing gathers and device transforms; on the host, doing them
  meter conductor_idle;  ///< waiting for blocks, free rows or copies

  // The consumer's side; one thread.
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  double seconds = 0;
  double first_batch_seconds = 0;
  double wait_seconds = 0;
  std::array<double, 4> waits{};  ///< as stamps::charge
};

}  // namespace penstock::pipeline
