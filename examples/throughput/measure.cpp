#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checksum.hpp"

namespace examples {
namespace gpu = penstock::gpu;
namespace pl = penstock::pipeline;
namespace {

constexpr std::string_view sum_item = "consumer: checksum";

}  // namespace

pl::description describe_rows(const stream_request& request, std::size_t batch_rows) {
  const auto source = pl::source{}.field("rows", penstock::io::datasets(request.file, request.dataset),
                                         {.around_page_cache = request.around_page_cache});
  auto rows = pl::read(source, request.order) | pl::batch_options{.rows = batch_rows} | request.transport;
  if (request.calibrated) rows = std::move(rows) | *request.calibrated;
  return request.trace.empty() ? rows : std::move(rows) | pl::traced();
}

pl::opened open_rows(const stream_request& request, std::size_t batch_rows) {
  return describe_rows(request, batch_rows).open();
}

std::size_t row_bytes_of(const pl::field_shape& field) {
  return std::accumulate(field.row_shape.begin(), field.row_shape.end(), penstock::size_of(field.element),
                         std::multiplies<std::size_t>{});
}

std::size_t planned_block_bytes(const stream_request& request, std::size_t batch_rows) {
  const auto opened = open_rows(request, batch_rows);
  return opened.plan(request.device, request.budget, consumer_items()).block_rows *
         row_bytes_of(opened.fields().front());
}

gpu::ledger consumer_items() {
  gpu::ledger items;
  items.add(gpu::memory_kind::device, std::string(sum_item), sizeof(std::uint64_t));
  items.add(gpu::memory_kind::pinned, std::string(sum_item), sizeof(std::uint64_t));
  return items;
}

consumer_memory::consumer_memory(const gpu::memory& memory)
    : total(reinterpret_cast<std::uint64_t*>(memory.at(gpu::memory_kind::device, sum_item).data())),
      result(reinterpret_cast<std::uint64_t*>(memory.at(gpu::memory_kind::pinned, sum_item).data())) {}

figure time_epochs(const timing& how, std::uint64_t rows, std::size_t row_bytes,
                   const std::function<pass(std::uint64_t epochs)>& run) {
  const pass warm_up = run(1);
  const auto enough = static_cast<std::uint64_t>(std::ceil(how.seconds / std::max(warm_up.seconds, 1e-6)));
  const std::uint64_t epochs = how.epochs > 0 ? how.epochs : std::max<std::uint64_t>(1, enough);
  std::vector<double> seconds;
  for (std::size_t repetition = 0; repetition < how.repetitions; ++repetition) {
    const pass timed = run(epochs);
    if (timed.checksum != warm_up.checksum * epochs)
      throw std::runtime_error("two epochs of the same rows differ in their checksum");
    seconds.push_back(timed.seconds);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  const double bytes = static_cast<double>(rows * epochs) * static_cast<double>(row_bytes);
  const auto [least, most] = std::ranges::minmax(seconds);
  figure timed;
  timed.rows_per_second = static_cast<double>(rows * epochs) / *middle;
  timed.bytes_per_second = bytes / *middle;
  timed.least_bytes_per_second = bytes / most;
  timed.most_bytes_per_second = bytes / least;
  timed.checksum = warm_up.checksum;
  return timed;
}

std::size_t check(const stream_request& request, std::size_t largest_batch) {
  const auto opened = open_rows(request, largest_batch);
  opened.plan(request.device, request.budget, consumer_items());
  return row_bytes_of(opened.fields().front());
}

figure measure_pipeline(const stream_request& request, std::size_t batch_rows, const timing& how) {
  auto opened = open_rows(request, batch_rows);
  auto items = consumer_items();
  const auto plan = opened.plan(request.device, request.budget, items);
  items.add(plan.ledger);
  const auto memory = std::make_shared<gpu::memory>(request.device, items);
  const consumer_memory sum(*memory);

  const gpu::stream stream(request.device);
  auto pipeline = std::move(opened).build(plan, memory);
  std::uint64_t next_epoch = 0;
  const auto run = [&](std::uint64_t epochs) {
    const auto start = std::chrono::steady_clock::now();
    gpu::fill(stream, sum.total, 0, sizeof(*sum.total));
    for (auto& batch : pipeline.epochs(next_epoch, epochs, {.stream = stream})) {
      const auto rows = batch.view("rows");
      add_checksum(batch.stream(), {rows.data, batch.valid_rows(), rows.row_bytes}, sum.total);
    }
    gpu::copy(stream, sum.result, sum.total, sizeof(*sum.total));
    stream.synchronize();
    next_epoch += epochs;
    return pass{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), *sum.result};
  };
  figure timed = time_epochs(how, pipeline.rows(), row_bytes_of(plan.fields.front()), run);
  const pl::pipeline_report report = pipeline.report();
  timed.reader = "penstock";
  timed.dataset = request.dataset;
  timed.order = request.order_name;
  timed.batch_rows = batch_rows;
  timed.device_bytes = memory->bytes(gpu::memory_kind::device);
  timed.pinned_bytes = memory->bytes(gpu::memory_kind::pinned);
  timed.first_batch_seconds = report.first_batch_seconds;
  timed.report = report;
  timed.calibrated = request.calibrated;
  if (!request.trace.empty()) timed.dropped_spans = pipeline.write_trace(request.trace);
  return timed;
}

}  // namespace examples
