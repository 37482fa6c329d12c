// What storage gives: parallel reads of one file with O_DIRECT, nothing else. Prints a line of JSON: the rate of the
// whole file with the number of threads and the size of a read that were best on parts of it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t alignment = 4096;

struct setting {
  unsigned threads = 1;
  std::uint64_t read_bytes = 0;
};

struct free_memory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

/// Bytes per second of [first, end), read piece by piece by whichever thread is free; 0 where a read fails.
double rate(const char* path, std::uint64_t first, std::uint64_t end, const setting& how) {
  std::atomic<std::uint64_t> next{first}, done{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    const int fd = ::open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    const std::unique_ptr<void, free_memory> memory(std::aligned_alloc(alignment, how.read_bytes));
    while (fd >= 0 && memory && !failed) {
      const std::uint64_t at = next.fetch_add(how.read_bytes);
      if (at >= end) break;
      const auto got = ::pread(fd, memory.get(), how.read_bytes, static_cast<off_t>(at));
      if (got <= 0) failed = true;
      done += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    }
    if (fd < 0 || !memory) failed = true;
    if (fd >= 0) ::close(fd);
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < how.threads; ++t) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return failed ? 0 : static_cast<double>(done) / seconds.count();
}

}  // namespace

int main(int argc, char** argv) {
  struct stat status {};
  if (argc != 2 || ::stat(argv[1], &status) != 0) {
    std::fprintf(stderr, "usage: penstock-direct-limit FILE\n");
    return 2;
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  std::vector<setting> grid;
  for (const unsigned threads : {2u, 4u, 8u, 16u, 32u})
    for (const std::uint64_t mib : {1u, 4u}) grid.push_back({threads, mib << 20});
  // Each setting reads a part of its own.
  const std::uint64_t part = std::max<std::uint64_t>(bytes / grid.size() / alignment * alignment, alignment);
  setting best = grid.front();
  double best_rate = 0;
  for (std::size_t n = 0; n < grid.size(); ++n) {
    const double r = rate(argv[1], n * part, std::min(bytes, (n + 1) * part), grid[n]);
    if (r <= best_rate) continue;
    best_rate = r;
    best = grid[n];
  }
  const double whole = std::max(rate(argv[1], 0, bytes, best), rate(argv[1], 0, bytes, best));
  if (whole == 0) {
    std::fprintf(stderr, "penstock-direct-limit: %s cannot be read with O_DIRECT: %s\n", argv[1], std::strerror(errno));
    return 1;
  }
  std::printf("{\"gb_per_s\": %.3f, \"threads\": %u, \"read_bytes\": %llu}\n", whole / 1e9, best.threads,
              static_cast<unsigned long long>(best.read_bytes));
}
