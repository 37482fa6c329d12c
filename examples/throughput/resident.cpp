#include <penstock/gpu/memory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "checksum.hpp"
#include "measure.hpp"

namespace examples {
namespace gpu = penstock::gpu;
namespace pl = penstock::pipeline;
namespace {

constexpr std::string_view rows_item = "resident: rows";

/// Rows that half of the device's budget holds; whole batches, where the dataset has more.
std::uint64_t resident_rows(const stream_request& request, std::uint64_t rows, std::size_t row_bytes,
                            std::size_t batch_rows) {
  const std::uint64_t most = request.budget.device_bytes / 2 / std::max<std::size_t>(1, row_bytes);
  if (rows <= most) return rows;
  if (most < batch_rows)
    throw std::runtime_error(fmt::format(
        "--resident: a batch of {} rows takes more than half of --device-memory; a larger budget helps", batch_rows));
  return most / batch_rows * batch_rows;
}

/// The pipeline that loads the rows, and what they take beside it.
struct loading {
  pl::opened opened;
  std::size_t row_bytes;
  std::uint64_t rows, held;
  gpu::ledger items;
  pl::pipeline_plan plan;
};

loading plan_loading(stream_request request, std::size_t batch_rows) {
  request.order = pl::sequential{};
  auto opened = open_rows(request, batch_rows);
  const std::size_t row_bytes = row_bytes_of(opened.fields().front());
  const std::uint64_t rows = opened.rows(), held = resident_rows(request, rows, row_bytes, batch_rows);
  auto items = consumer_items();
  items.add(gpu::memory_kind::device, std::string(rows_item), held * row_bytes);
  auto plan = opened.plan(request.device, request.budget, items);
  items.add(plan.ledger);
  return {std::move(opened), row_bytes, rows, held, std::move(items), std::move(plan)};
}

}  // namespace

void check_resident(const stream_request& request, std::size_t batch_rows) { plan_loading(request, batch_rows); }

figure measure_resident(const stream_request& request, std::size_t batch_rows, const timing& how) {
  loading from = plan_loading(request, batch_rows);
  const std::size_t row_bytes = from.row_bytes;
  const std::uint64_t rows = from.rows, held = from.held;
  const auto memory = std::make_shared<gpu::memory>(request.device, from.items);
  const consumer_memory sum(*memory);
  std::byte* const resident = memory->at(gpu::memory_kind::device, rows_item).data();

  const gpu::stream stream(request.device);
  auto pipeline = std::move(from.opened).build(from.plan, memory);
  std::uint64_t loaded = 0;
  for (auto& batch : pipeline.epochs(0, 1, {.stream = stream})) {
    const std::uint64_t count = std::min<std::uint64_t>(batch.valid_rows(), held - loaded);
    gpu::copy(stream, resident + loaded * row_bytes, batch.view("rows").data, count * row_bytes);
    loaded += count;
    if (loaded == held) break;
  }
  stream.synchronize();

  figure timed = time_epochs(how, rows, row_bytes, [&](std::uint64_t epochs) {
    const auto start = std::chrono::steady_clock::now();
    gpu::fill(stream, sum.total, 0, sizeof(*sum.total));
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
      for (std::uint64_t first = 0; first < rows; first += batch_rows) {
        const std::uint64_t count = std::min<std::uint64_t>(batch_rows, rows - first);
        add_checksum(stream, {resident + first % held * row_bytes, count, row_bytes}, sum.total);
      }
    gpu::copy(stream, sum.result, sum.total, sizeof(*sum.total));
    stream.synchronize();
    return pass{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), *sum.result};
  });
  timed.reader = "resident";
  timed.dataset = request.dataset;
  timed.order = held == rows ? "sequential" : fmt::format("the first {} rows again", held);
  timed.batch_rows = batch_rows;
  timed.device_bytes = memory->bytes(gpu::memory_kind::device);
  timed.pinned_bytes = memory->bytes(gpu::memory_kind::pinned);
  timed.whole = held == rows;
  return timed;
}

}  // namespace examples
