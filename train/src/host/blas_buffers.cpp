#include "blas_buffers.hpp"

#include <penstock/error.hpp>

#include <cblas.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

// No part of OpenBLAS's interface, but of every library of it so far: without them there is the trial alone.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace penstock::train::host {
namespace {

/// Of addresses: OpenBLAS's BUFFER_SIZE on x86-64, and no less than elsewhere. Pages are only taken as they are used.
constexpr std::size_t buffer_bytes = std::size_t{128} << 20;

/// Maps what buffers of OpenBLAS need, and gives it back.
class trial {
 public:
  trial() = default;
  ~trial() {
    for (void* const address : mapped_) ::munmap(address, buffer_bytes);
  }
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  bool maps_one_more() {
    void* const address = ::mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return false;
    mapped_.push_back(address);
    return true;
  }

 private:
  std::vector<void*> mapped_;
};

/// OpenBLAS's own threads take a buffer each when they start, which may be later than this.
std::size_t own_threads() { return static_cast<std::size_t>(std::max(openblas_get_num_procs(), 1)) - 1; }

void check_room(std::size_t threads) {
  trial room;
  for (std::size_t n = 0; n < threads + own_threads(); ++n)
    if (!room.maps_one_more())
      throw error(fmt::format(
          "train: OpenBLAS, which multiplies on the host, needs {} MiB of addresses for each of {} threads, "
          "and the system gives no more ({}); raise the limit (ulimit -v, ulimit -d), or take fewer threads",
          buffer_bytes >> 20, threads + own_threads(), std::strerror(errno)));
}

}  // namespace

void take_blas_buffers(std::size_t threads) {
  check_room(threads);
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::vector<void*> buffers;
  buffers.reserve(threads);
  for (std::size_t n = 0; n < threads; ++n) buffers.push_back(blas_memory_alloc(0));
  for (void* const buffer : buffers) blas_memory_free(buffer);  // OpenBLAS keeps it, for the next one that asks
}

}  // namespace penstock::train::host
