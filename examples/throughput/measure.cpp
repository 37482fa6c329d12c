#include "measure.hpp"

#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
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
namespace io = penstock::io;
namespace pl = penstock::pipeline;
namespace {

constexpr std::string_view sum_item = "consumer: checksum";

bool converts(const pl::field_options& values) noexcept { return values.as || values.scale != 1 || values.shift != 0; }

}  // namespace

std::string name_of(const stream_request& request) {
  std::string name = request.dataset;
  if (request.values.as) name += fmt::format(" as {}", penstock::name_of(*request.values.as));
  for (const std::string& other : request.others) name += " + " + other;
  return name;
}

bool is_plain(const stream_request& request) noexcept { return request.others.empty() && !converts(request.values); }

std::vector<io::location> datasets_of(const stream_request& request) {
  auto all = io::datasets(request.file, request.dataset);
  for (const std::string& other : request.others)
    std::ranges::move(io::datasets(request.file, other), back_inserter(all));
  return all;
}

double stored_per_byte(const stream_request& request) {
  const io::row_reader reader(io::datasets(request.file, request.dataset));
  const double bytes = static_cast<double>(reader.rows()) * static_cast<double>(reader.row_bytes());
  std::uint64_t stored = 0;
  for (const auto& segment : reader.segments()) stored += segment.info.stored_bytes;
  return stored > 0 && bytes > 0 ? static_cast<double>(stored) / bytes : 1;  // a virtual dataset does not say
}

pl::description describe_rows(const stream_request& request, std::size_t batch_rows) {
  pl::field_options options = request.values;
  options.around_page_cache = request.around_page_cache;
  auto source = pl::source{}.field("rows", io::datasets(request.file, request.dataset), options);
  for (std::size_t n = 0; n < request.others.size(); ++n)
    source.field(fmt::format("rows {}", n + 2), io::datasets(request.file, request.others[n]),
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

std::size_t stored_row_bytes(const stream_request& request) {
  stream_request stored = request;
  stored.values = {};
  const auto opened = open_rows(stored, 1);
  const auto& fields = opened.fields();
  return std::accumulate(fields.begin(), fields.end(), std::size_t{0},
                         [](std::size_t sum, const pl::field_shape& field) { return sum + row_bytes_of(field); });
}

std::size_t planned_block_bytes(const stream_request& request, std::size_t batch_rows) {
  const auto opened = open_rows(request, batch_rows);
  return opened.plan(request.device, request.budget, consumer_items()).block_rows * stored_row_bytes(request);
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

namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// So many take `seconds`, at the rate of `epochs` that were timed.
std::uint64_t epochs_for(double seconds, std::uint64_t epochs, const pass& timed) {
  const double each = std::max(timed.seconds / static_cast<double>(epochs), 1e-6);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(seconds / each)));
}

}  // namespace

figure time_epochs(const timing& how, std::uint64_t rows, std::size_t row_bytes,
                   const std::function<pass(std::uint64_t epochs)>& run) {
  const pass warm_up = run(1);
  std::uint64_t epochs = how.epochs > 0 ? how.epochs : epochs_for(how.seconds / 4, 1, warm_up);
  figure timed;
  std::vector<double> rates, first_batches;  // rows per second; seconds
  while (rates.size() < how.repetitions) {
    const pass one = run(epochs);
    if (one.checksum != warm_up.checksum * epochs)
      throw std::runtime_error("two epochs of the same rows differ in their checksum");
    if (how.epochs == 0 && one.seconds < how.seconds) {
      epochs = std::max(epochs + 1, epochs_for(1.1 * how.seconds, epochs, one));  // the next may be a little faster
      continue;
    }
    timed.repetitions.push_back({epochs, one.seconds});
    rates.push_back(static_cast<double>(rows * epochs) / one.seconds);
    first_batches.push_back(one.first_batch_seconds);
  }
  const double bytes = static_cast<double>(row_bytes);
  timed.rows_per_second = median_of(rates);
  timed.bytes_per_second = timed.rows_per_second * bytes;
  timed.least_bytes_per_second = std::ranges::min(rates) * bytes;
  timed.most_bytes_per_second = std::ranges::max(rates) * bytes;
  timed.first_batch_seconds = median_of(std::move(first_batches));
  timed.checksum = warm_up.checksum;
  return timed;
}

std::size_t check(const stream_request& request, std::size_t largest_batch) {
  const auto opened = open_rows(request, largest_batch);
  if (opened.rows() == 0)
    throw std::invalid_argument(fmt::format("{}:{} has no rows to measure", request.file, request.dataset));
  const auto fractional = [](double value) { return value != std::floor(value); };
  const pl::field_options& values = request.values;
  if (!penstock::is_floating(opened.fields().front().element) && (fractional(values.scale) || fractional(values.shift)))
    throw std::invalid_argument(fmt::format("the scaled values of {} would be cut to {}, its type: add --as float32",
                                            request.dataset, penstock::name_of(opened.fields().front().element)));
  opened.plan(request.device, request.budget, consumer_items());
  return stored_row_bytes(request);
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
      for (const pl::field_shape& field : plan.fields) {
        const auto rows = batch.view(field.name);
        add_checksum(batch.stream(), {rows.data, batch.valid_rows(), rows.row_bytes}, sum.total);
      }
    }
    gpu::copy(stream, sum.result, sum.total, sizeof(*sum.total));
    stream.synchronize();
    const auto end = std::chrono::steady_clock::now();
    next_epoch += epochs;
    return pass{std::chrono::duration<double>(end - start).count(), *sum.result, pipeline.report().first_batch_seconds};
  };
  figure timed = time_epochs(how, pipeline.rows(), stored_row_bytes(request), run);
  const pl::pipeline_report report = pipeline.report();
  const double share = timed.bytes_per_second / std::max(1.0, static_cast<double>(report.bytes));
  timed.stored_bytes_per_second = static_cast<double>(report.reading.stored_bytes) * share;
  for (const pl::stage_report& stage : report.stages)
    if (stage.name == "copy (issued)") timed.copied_bytes_per_second = static_cast<double>(stage.bytes) * share;
  timed.reader = "penstock";
  timed.dataset = name_of(request);
  timed.values = request.values;
  timed.others = request.others;
  timed.order = request.order_name;
  timed.batch_rows = batch_rows;
  timed.device_bytes = memory->bytes(gpu::memory_kind::device);
  timed.pinned_bytes = memory->bytes(gpu::memory_kind::pinned);
  timed.report = report;
  timed.calibrated = request.calibrated;
  if (!request.trace.empty()) timed.dropped_spans = pipeline.write_trace(request.trace);
  return timed;
}

}  // namespace examples
