#include "limits.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/handle.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/location.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace examples {
namespace gpu = penstock::gpu;
namespace {

using clock = std::chrono::steady_clock;
using namespace penstock::literals;

constexpr std::string_view block_item = "limits: blocks";
constexpr double least_seconds = 0.25;
constexpr double most_seconds = 1;
constexpr std::uint64_t least_blocks_each = 4;  // for a thread; with fewer they read the same pages all the time
constexpr std::size_t page_bytes = 4096;        // what reads around the page cache are aligned to
constexpr std::size_t some_files = 32;          // that are read, if there are as many

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

struct descriptor_traits {
  using native_type = int;
  static native_type empty() noexcept { return -1; }
  static void release(native_type descriptor) noexcept { ::close(descriptor); }
};

struct open_file {
  penstock::handle<descriptor_traits> descriptor;
  std::uint64_t bytes = 0;
};

/// The files that hold the values, by one name each.
std::set<std::filesystem::path> files_of(const stream_request& request) {
  std::set<std::filesystem::path> names;
  for (const auto& where : datasets_of(request))
    for (const auto& name : penstock::io::file(where.file).value_files(where.dataset))
      names.insert(std::filesystem::weakly_canonical(name));
  return names;
}

/// A part of those that may be open.
std::size_t most_files() {
  rlimit most{};
  return ::getrlimit(RLIMIT_NOFILE, &most) == 0 ? static_cast<std::size_t>(most.rlim_cur) / 2 : some_files;
}

[[noreturn]] void refuse(const std::filesystem::path& name, int system) {
  throw std::runtime_error(fmt::format("{}: it could not be opened to measure the storage's limit: {}", name.string(),
                                       std::generic_category().message(system)));
}

/// The largest of them, as many as hold enough bytes, or 32: what is measured are the storage and the page cache, and
/// descriptors are scarce.
std::vector<open_file> open_files(const std::set<std::filesystem::path>& names, const stream_request& request,
                                  std::uint64_t enough) {
  std::vector<std::pair<std::uint64_t, std::filesystem::path>> sizes;
  for (const auto& name : names) {
    std::error_code why;
    const std::uint64_t bytes = std::filesystem::file_size(name, why);
    if (why) refuse(name, why.value());
    if (bytes > 0) sizes.emplace_back(bytes, name);
  }
  std::ranges::stable_sort(sizes, std::greater(), &std::pair<std::uint64_t, std::filesystem::path>::first);
  std::vector<open_file> files;
  std::uint64_t all = 0;
  for (const auto& [bytes, name] : sizes) {
    if (files.size() >= some_files && (all >= enough || files.size() >= most_files())) break;
    all += bytes;
    open_file file{.descriptor = {}, .bytes = bytes};
    if (request.around_page_cache) file.descriptor.reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    if (!file.descriptor) file.descriptor.reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.descriptor) refuse(name, errno);
    files.push_back(std::move(file));
  }
  return files;
}

/// Blocks of all files, counted through and started again, until the time is over; any thread takes the next one.
class block_reader {
 public:
  block_reader(const std::vector<open_file>& files, std::size_t block_bytes)
      : files_(files), block_bytes_(block_bytes) {
    for (const open_file& file : files) blocks_ += (file.bytes + block_bytes - 1) / block_bytes;
  }

  void run(std::byte* buffer) noexcept {
    while (true) {
      const std::uint64_t number = next_.fetch_add(1);
      const double seconds = seconds_since(start_);
      // One pass at least, unless storage is slow: the beginning of a file may be cached better than its end.
      if (seconds > most_seconds || (seconds > least_seconds && number >= blocks_)) return;
      std::uint64_t block = number % blocks_;
      const open_file* file = files_.data();
      for (std::uint64_t here = 0; block >= (here = (file->bytes + block_bytes_ - 1) / block_bytes_); ++file)
        block -= here;
      const ::ssize_t count =
          ::pread(file->descriptor.native(), buffer, block_bytes_, static_cast<::off_t>(block * block_bytes_));
      if (count < 0) {
        failed_ = true;
        return;
      }
      bytes_ += static_cast<std::uint64_t>(count);
    }
  }

  bool failed() const noexcept { return failed_; }
  double bytes_per_second() const noexcept { return static_cast<double>(bytes_) / seconds_since(start_); }

 private:
  const std::vector<open_file>& files_;
  std::size_t block_bytes_;
  std::uint64_t blocks_ = 0;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> failed_{false};
  clock::time_point start_ = clock::now();
};

double read_once(const std::vector<open_file>& files, const stream_request& request, std::span<std::byte> buffers,
                 std::size_t block_bytes) {
  block_reader reader(files, block_bytes);
  {
    std::vector<std::jthread> threads;
    for (std::size_t at = 0; at + block_bytes <= buffers.size(); at += block_bytes)
      threads.emplace_back([&reader, buffer = buffers.data() + at] { reader.run(buffer); });
  }
  if (reader.failed())
    throw std::runtime_error(fmt::format("{}: it could not be read to measure the storage's limit", request.file));
  return reader.bytes_per_second();
}

/// The best of a few passes: on all processors, and on those that readers take beside a device, which may be faster.
double measure_storage(const stream_request& request, const std::vector<open_file>& files, std::span<std::byte> buffers,
                       std::size_t block_bytes) {
  const std::size_t threads = buffers.size() / block_bytes, fewer = std::max<std::size_t>(1, threads * 3 / 4);
  double best = 0;
  for (const std::size_t n : {threads, fewer, threads, fewer})
    best = std::max(best, read_once(files, request, buffers.first(n * block_bytes), block_bytes));
  return best;
}

double measure_link(gpu::stream_ref stream, std::span<std::byte> pinned, std::span<std::byte> device) {
  constexpr int copies_at_once = 16;
  gpu::copy(stream, device.data(), pinned.data(), device.size());
  stream.synchronize();
  const auto start = clock::now();
  std::uint64_t bytes = 0;
  for (; seconds_since(start) < least_seconds; stream.synchronize())
    for (int n = 0; n < copies_at_once; ++n, bytes += device.size())
      gpu::copy(stream, device.data(), pinned.data(), device.size());
  return static_cast<double>(bytes) / seconds_since(start);
}

/// `link`: whether that is measured, too.
penstock::pipeline::machine_limits measure(const stream_request& request, std::size_t batch_rows,
                                           const std::set<std::filesystem::path>& names, bool link) {
  const std::size_t threads = gpu::processors();
  const std::size_t most = std::min(request.budget.pinned_bytes / threads, request.budget.device_bytes);
  const std::size_t wanted = planned_block_bytes(request, batch_rows);
  const std::size_t block = std::max(page_bytes, std::min(wanted, most) / page_bytes * page_bytes);
  gpu::ledger items;
  items.add(gpu::memory_kind::pinned, std::string(block_item), threads * block);
  items.add(gpu::memory_kind::device, std::string(block_item),
            std::max(block, std::min(threads * block, request.budget.device_bytes / page_bytes * page_bytes)));
  const gpu::memory memory(request.device, items);
  const auto pinned = memory.at(gpu::memory_kind::pinned, block_item);

  penstock::pipeline::machine_limits limits;
  const std::uint64_t enough = least_blocks_each * threads * block;
  const std::vector<open_file> files = open_files(names, request, enough);
  std::uint64_t bytes = 0;
  for (const open_file& file : files) bytes += file.bytes;
  if (bytes >= enough) limits.storage_bytes_per_second = measure_storage(request, files, pinned, block);
  if (link) {
    const gpu::stream stream(request.device);
    limits.link_bytes_per_second = measure_link(stream, pinned, memory.at(gpu::memory_kind::device, block_item));
  }
  return limits;
}

}  // namespace

penstock::pipeline::machine_limits limits_by_files::of(const stream_request& request, std::size_t batch_rows) {
  std::set<std::filesystem::path> files = files_of(request);
  if (const auto known = measured_.find(files); known != measured_.end()) return known->second;
  const bool first = measured_.empty();
  auto limits = measure(request, batch_rows, files, first && request.device.is_cuda());
  if (!first) limits.link_bytes_per_second = measured_.begin()->second.link_bytes_per_second;
  return measured_.emplace(std::move(files), limits).first->second;
}

}  // namespace examples
