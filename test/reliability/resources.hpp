#pragma once

#include "cuda_resources.hpp"

#include <cstddef>
#include <ostream>

namespace penstock::test {

/// What a process holds that must be given back when an epoch has failed.
struct resources {
  std::size_t descriptors = 0;   ///< open file descriptors
  std::size_t hdf5_objects = 0;  ///< files, datasets, groups, types and attributes that libhdf5 has open
  std::size_t large_bytes = 0;   ///< of memory that was allocated in pieces of 64 KiB or more: slabs, rings, caches
  cuda_resources cuda{};         ///< what the CUDA runtime gave out

  friend bool operator==(const resources&, const resources&) = default;
  friend std::ostream& operator<<(std::ostream& out, const resources& r) {
    return out << r.descriptors << " descriptors, " << r.hdf5_objects << " HDF5 objects, " << r.large_bytes
               << " large bytes, " << r.cuda.device_bytes << " device bytes, " << r.cuda.pinned_bytes
               << " pinned bytes, " << r.cuda.objects << " streams and events";
  }
};

/// Counted now. Large memory is seen where the C library's own allocator is used: not under sanitizers.
resources held_now();

}  // namespace penstock::test
