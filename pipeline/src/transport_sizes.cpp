#include "transport_sizes.hpp"

#include <algorithm>
#include <array>

namespace penstock::pipeline {
namespace {

using namespace penstock::literals;

constexpr std::size_t most_waiting_readers = 64;  // deeper queues make no disk faster, and each reader has memory
constexpr std::array block_bytes_device{largest_block_bytes, 1_MiB, 512_KiB, 256_KiB, 128_KiB, 64_KiB, 16_KiB};
// Slots that stay in the last-level cache are copied faster: measured on an H100 machine with 16 cores and a cache of
// 105 MiB, 64 MiB of slots carry 42 to 44 GB/s where 256 MiB carry 34.
constexpr std::size_t most_slots_bytes = 64_MiB, least_slots_bytes = 16_MiB;
constexpr std::array block_bytes_gathered{most_chunk_block_bytes, 8_MiB, 4_MiB};
constexpr std::array block_bytes_host{1_MiB, 512_KiB, 256_KiB, 128_KiB, 64_KiB, 16_KiB};

std::size_t stored_row_bytes(const wiring& w) {
  std::size_t bytes = 0;
  for (const host_field& field : w.host) bytes += field.row_bytes();
  return std::max<std::size_t>(bytes, 1);
}

std::size_t busy_readers(const transport_task& task) {
  if (task.host) return task.processors;
  // A consumer on a device needs a processor for its launches, the thread that drives the device another, and both do
  // without the wakings of readers that wait for memory anyway: on 16 processors, 12 or 14 readers are as fast.
  // Decoding takes all that it can get, and brings so few blocks that the two cost it little: on those 16 processors,
  // 16 readers of gzip are a ninth faster than 15.
  return task.decodes ? task.processors : std::max<std::size_t>(1, task.processors * 3 / 4);
}

}  // namespace

bool gathers_rows_of_chunks(const transport_task& task) {
  if (!task.decodes || task.pooled || task.run_rows != 1 || task.row_bytes == 0) return false;
  return most_chunk_block_bytes / task.row_bytes >= task.rows / std::max<std::uint64_t>(task.chunk_rows, 1);
}

std::size_t good_slots_bytes(const transport_task& task) {
  return task.cache_bytes ? std::clamp(task.cache_bytes / 3 * 2, least_slots_bytes, most_slots_bytes)
                          : most_slots_bytes;
}

std::vector<std::size_t> block_sizes(const wiring& w, const transport_task& task) {
  const std::size_t row = stored_row_bytes(w);
  const std::uint64_t most = std::max<std::uint64_t>(task.pooled ? task.window_rows : task.rows, 1);
  std::vector<std::size_t> sizes;
  const auto add = [&](std::size_t bytes, bool align) {
    std::uint64_t rows = std::max<std::uint64_t>(bytes / row, 1);
    const std::uint64_t step =
        task.pooled ? task.run_rows : task.chunk_rows;  // blocks that end where these end cut no chunk
    if (align && step > 1 && rows >= step) rows = (rows + step / 2) / step * step;
    if (align && step > rows && step * row <= most_chunk_block_bytes && sizes.empty()) rows = step;
    rows = std::min(rows, most);
    if (sizes.empty() || rows < sizes.back()) sizes.push_back(static_cast<std::size_t>(rows));
  };
  if (!task.wish.block_bytes && gathers_rows_of_chunks(task))
    for (const std::size_t bytes : block_bytes_gathered) add(bytes, false);
  if (task.wish.block_bytes)
    add(task.wish.block_bytes, true);
  else if (task.host)
    for (const std::size_t bytes : block_bytes_host) add(bytes, true);
  else
    for (const std::size_t bytes : block_bytes_device) add(bytes, true);
  if (!task.wish.block_bytes) add(1, false);
  return sizes;
}

std::size_t most_threads(const transport_task& task, std::size_t threads) {
  if (task.wish.threads || task.decodes) return threads;
  return std::max(threads, 2 * task.processors);
}

std::size_t wished_threads(const transport_task& task) {
  if (task.wish.threads) return task.wish.threads;
  // Who waits for a disk takes no processor meanwhile: on 16 processors, 32 readers reach 0.99 of what parallel
  // O_DIRECT reads of the file do, 15 reach 0.85.
  const std::size_t waiting = task.waits_for_disk ? std::min(2 * task.processors, most_waiting_readers) : 0;
  return std::max(busy_readers(task), waiting);
}

}  // namespace penstock::pipeline
