#include "resources.hpp"

#include <hdf5.h>
#include <malloc.h>

#include <filesystem>
#include <iterator>

namespace penstock::test {
namespace {

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator begin(folder), end;
  return static_cast<std::size_t>(std::distance(begin, end));
}

}  // namespace

resources held_now() {
  // Pieces above the threshold are maps of their own, which the C library counts apart; set by hand, it does not grow.
  constexpr int large = 64 << 10;
  [[maybe_unused]] static const int set = ::mallopt(M_MMAP_THRESHOLD, large);
  ::H5garbage_collect();  // libhdf5 keeps what it has freed in lists of its own
  return {.descriptors = entries("/proc/self/fd"),
          .hdf5_objects = static_cast<std::size_t>(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL)),
          .large_bytes = ::mallinfo2().hblkhd,
          .cuda = cuda_held_now()};
}

}  // namespace penstock::test
