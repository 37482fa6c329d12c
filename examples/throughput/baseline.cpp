#include <penstock/gpu/memory.hpp>

#include <algorithm>
#include <chrono>

#include "checksum.hpp"
#include "measure.hpp"
#include "plain_reader.hpp"

namespace examples {
namespace gpu = penstock::gpu;
namespace {

constexpr std::string_view batch_item = "baseline: batch";
constexpr std::string_view sum_item = "baseline: checksum";

gpu::ledger memory_items(std::size_t batch_bytes) {
  gpu::ledger items;
  for (const auto kind : {gpu::memory_kind::device, gpu::memory_kind::pinned}) {
    items.add(kind, std::string(batch_item), batch_bytes);
    items.add(kind, std::string(sum_item), sizeof(std::uint64_t));
  }
  return items;
}

/// The loop that most programs have: read a batch, copy it, use it, wait.
void stream_epoch(plain_reader& reader, std::size_t batch_rows, const gpu::memory& memory, gpu::stream_ref stream) {
  std::byte* const pinned = memory.at(gpu::memory_kind::pinned, batch_item).data();
  std::byte* const device = memory.at(gpu::memory_kind::device, batch_item).data();
  auto* const total = reinterpret_cast<std::uint64_t*>(memory.at(gpu::memory_kind::device, sum_item).data());
  for (std::uint64_t first = 0; first < reader.rows(); first += batch_rows) {
    const auto rows = std::min<std::uint64_t>(batch_rows, reader.rows() - first);
    reader.read(first, rows, pinned);
    gpu::copy(stream, device, pinned, rows * reader.row_bytes());
    add_checksum(stream, {device, rows, reader.row_bytes()}, total);
    stream.synchronize();
  }
}

}  // namespace

void check_baseline(const stream_request& request, std::size_t row_bytes) {
  const plain_reader reader(penstock::io::datasets(request.file, request.dataset), row_bytes);
}

figure measure_baseline(const stream_request& request, std::size_t row_bytes, std::size_t batch_rows,
                        const timing& how) {
  plain_reader reader(penstock::io::datasets(request.file, request.dataset), row_bytes);
  const gpu::memory memory(request.device, memory_items(batch_rows * reader.row_bytes()));
  const gpu::stream stream(request.device);
  const auto result = memory.at(gpu::memory_kind::pinned, sum_item);
  const auto total = memory.at(gpu::memory_kind::device, sum_item);

  figure timed = time_epochs(how, reader.rows(), reader.row_bytes(), [&](std::uint64_t epochs) {
    const auto start = std::chrono::steady_clock::now();
    gpu::fill(stream, total.data(), 0, total.size());
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) stream_epoch(reader, batch_rows, memory, stream);
    gpu::copy(stream, result.data(), total.data(), total.size());
    stream.synchronize();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return pass{seconds.count(), *reinterpret_cast<const std::uint64_t*>(result.data())};
  });
  timed.reader = "baseline";
  timed.stored_bytes_per_second = timed.bytes_per_second * stored_per_byte(request);
  if (request.device.is_cuda()) timed.copied_bytes_per_second = timed.bytes_per_second;
  timed.dataset = request.dataset;
  timed.order = "sequential";
  timed.device_bytes = memory.bytes(gpu::memory_kind::device);
  timed.pinned_bytes = memory.bytes(gpu::memory_kind::pinned);
  timed.batch_rows = batch_rows;
  return timed;
}

}  // namespace examples
