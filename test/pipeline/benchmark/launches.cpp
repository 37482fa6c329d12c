// What a consumer's launches cost beside the work that any reader must do: threads that read a file from the page
// cache, and copies from pinned memory to the device, both at a stated rate and without Penstock's pipeline. A loop
// launches the kernel of penstock-throughput on 128 KiB that lie on the device: batches of 32 rows of 4 KiB.
//
//   penstock-benchmark-launches rows.h5 --gb-per-second 30
#include <penstock/bytes.hpp>
#include <penstock/gpu/memory.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "throughput/checksum.hpp"

using namespace penstock;
using namespace penstock::literals;

namespace {

using clock_type = std::chrono::steady_clock;
double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

constexpr std::size_t read_bytes = 1_MiB, copy_bytes = 4_MiB, slot_bytes = 64_MiB;
constexpr std::size_t row_bytes = 4096, batch_rows = 32, rows_on_device = 65536;

struct options {
  std::string file;
  std::vector<double> gb_per_second{30};
  unsigned readers = 6;
  double seconds = 0.7;
  int repeat = 3;
};

/// Sleeps where `done` bytes are more than `rate` bytes a second have come to. Gives whether it did.
bool rests(clock_type::time_point start, std::uint64_t done, double rate) {
  const double ahead = static_cast<double>(done) / rate - seconds_since(start);
  if (ahead > 0) std::this_thread::sleep_for(std::chrono::duration<double>(ahead));
  return ahead > 0;
}

/// The file, read again and again to `slots`, each reader to its own part of them.
void read_pages(int file, std::span<std::byte> slots, std::uint64_t at, double rate, const std::atomic<bool>& stop) {
  const auto start = clock_type::now();
  std::uint64_t done = 0;
  for (std::size_t slot = 0; !stop;) {
    if (rests(start, done, rate)) continue;
    const ssize_t count = ::pread(file, slots.data() + slot, read_bytes, static_cast<off_t>(at));
    if (count < 0) throw std::runtime_error("the file cannot be read");
    at = count == 0 ? 0 : at + static_cast<std::uint64_t>(count);
    done += static_cast<std::uint64_t>(count);
    slot = (slot + read_bytes) % (slots.size() / read_bytes * read_bytes);
  }
}

/// Copies of the slots, four at a time.
void copy_slots(gpu::device device, std::span<std::byte> to, std::span<const std::byte> slots, double rate,
                const std::atomic<bool>& stop) {
  const gpu::stream stream(device);
  std::array<gpu::event, 4> arrived{gpu::event(device), gpu::event(device), gpu::event(device), gpu::event(device)};
  const auto start = clock_type::now();
  std::uint64_t done = 0;
  for (std::size_t copy = 0; !stop;) {
    if (rests(start, done, rate)) continue;
    gpu::event& last = arrived[copy % arrived.size()];
    if (copy >= arrived.size()) last.synchronize();
    gpu::copy(stream, to.data(), slots.data() + copy * copy_bytes % slots.size(), copy_bytes);
    last.record(stream);
    done += copy_bytes;
    ++copy;
  }
  stream.synchronize();
}

class loop {
 public:
  explicit loop(const options& o) : options_(o), device_(gpu::device::cuda(0)) {
    file_ = ::open(o.file.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) throw std::runtime_error(o.file + " cannot be opened");
    gpu::ledger items;
    items.add(gpu::memory_kind::device, "rows", rows_on_device * row_bytes);
    items.add(gpu::memory_kind::device, "copies", copy_bytes);
    items.add(gpu::memory_kind::device, "sum", sizeof(std::uint64_t));
    items.add(gpu::memory_kind::pinned, "slots", slot_bytes);
    memory_ = std::make_unique<gpu::memory>(device_, items);
  }
  ~loop() { ::close(file_); }
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  /// µs of a launch, while `reads` and `copies` bytes a second go on beside it; 0: none.
  double measure(double reads, double copies) {
    std::atomic<bool> stop{false};
    std::vector<std::jthread> beside;
    const auto slots = memory_->at(gpu::memory_kind::pinned, "slots");
    const std::size_t each = slots.size() / options_.readers;
    const auto size = static_cast<std::uint64_t>(::lseek(file_, 0, SEEK_END));
    for (unsigned reader = 0; reads > 0 && reader < options_.readers; ++reader)
      beside.emplace_back([&, reader] {
        read_pages(file_, slots.subspan(reader * each, each), size / options_.readers * reader,
                   reads / options_.readers, stop);
      });
    if (copies > 0)
      beside.emplace_back(
          [&] { copy_slots(device_, memory_->at(gpu::memory_kind::device, "copies"), slots, copies, stop); });
    launch(0.2 * options_.seconds);
    const double micros = launch(options_.seconds);
    stop = true;
    return micros;
  }

 private:
  double launch(double seconds) {
    const std::byte* const rows = memory_->at(gpu::memory_kind::device, "rows").data();
    auto* const sum = reinterpret_cast<std::uint64_t*>(memory_->at(gpu::memory_kind::device, "sum").data());
    std::uint64_t launches = 0;
    const auto start = clock_type::now();
    while (seconds_since(start) < seconds)
      for (int i = 0; i < 64; ++i, ++launches)
        examples::add_checksum(stream_,
                               {rows + launches * batch_rows % rows_on_device * row_bytes, batch_rows, row_bytes}, sum);
    stream_.synchronize();
    return seconds_since(start) / static_cast<double>(launches) * 1e6;
  }

  options options_;
  gpu::device device_;
  gpu::stream stream_{device_};
  std::unique_ptr<gpu::memory> memory_;
  int file_;
};

void show(loop& on, const options& o, const std::string& what, double reads, double copies) {
  std::vector<double> micros;
  for (int i = 0; i < o.repeat; ++i) micros.push_back(on.measure(reads, copies));
  std::sort(micros.begin(), micros.end());
  const double median = micros[micros.size() / 2];
  fmt::print("{:36} {:6.2f} us a launch ({:.2f} to {:.2f}), {:5.1f} GB/s\n", what, median, micros.front(),
             micros.back(), batch_rows * row_bytes / median / 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app{"What launches cost beside reads and copies"};
  app.add_option("file", o.file)->required();
  app.add_option("--gb-per-second", o.gb_per_second, "Of reads and of copies")->delimiter(',')->capture_default_str();
  app.add_option("--readers", o.readers)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--seconds", o.seconds, "Of a measurement")->capture_default_str();
  app.add_option("--repeat", o.repeat, "Measurements, of which the median is shown")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    loop on(o);
    show(on, o, "alone", 0, 0);
    for (const double rate : o.gb_per_second) {
      show(on, o, fmt::format("beside copies at {} GB/s", rate), 0, rate * 1e9);
      show(on, o, fmt::format("beside reads at {} GB/s", rate), rate * 1e9, 0);
      show(on, o, fmt::format("beside both at {} GB/s", rate), rate * 1e9, rate * 1e9);
    }
    show(on, o, "alone again", 0, 0);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
}
