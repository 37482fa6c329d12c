#include "machine.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "cgroup.hpp"

namespace penstock::gpu {
namespace {

struct cpu_set_deleter {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};

std::size_t processors_of_affinity() {
  // The kernel refuses a set that is smaller than its own.
  for (int most = 1024; most <= 1 << 20; most *= 2) {
    const std::unique_ptr<cpu_set_t, cpu_set_deleter> set(CPU_ALLOC(static_cast<std::size_t>(most)));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    if (set && sched_getaffinity(0, bytes, set.get()) == 0)
      return static_cast<std::size_t>(std::max(1, CPU_COUNT_S(bytes, set.get())));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

std::size_t processors() noexcept {
  std::size_t count = 1;
  try {
    count = processors_of_affinity();
    if (const auto quota = host::cgroup::of_this_process().processors())
      count = std::min(count, static_cast<std::size_t>(std::max(1.0, *quota)));
  } catch (const std::exception&) {
    // The control group's files could not be read: what affinity allows stands.
  }
  return count;
}

namespace host {

memory_size memory_of_machine() {
  memory_size size;
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kib = 0; in >> name >> kib && std::getline(in, unit);) {
    if (name == "MemTotal:") size.total_bytes = kib << 10;
    if (name == "MemAvailable:") size.free_bytes = kib << 10;
  }
  if (const auto limit = cgroup::of_this_process().memory_limit()) {
    size.free_bytes = std::min(size.free_bytes, limit->free_bytes);
    size.total_bytes = std::min(size.total_bytes, limit->limit_bytes);
  }
  return size;
}

}  // namespace host
}  // namespace penstock::gpu
