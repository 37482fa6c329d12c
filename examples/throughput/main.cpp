// Measures how fast a dataset reaches the device, against the batch size, and beside a plain loop.

#include <penstock/bytes.hpp>
#include <penstock/gpu/device.hpp>
#include <penstock/io/location.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/program.hpp"
#include "batch_sizes.hpp"
#include "measure.hpp"

namespace {

using namespace penstock::literals;

struct options {
  std::string file;
  std::vector<std::string> datasets;
  std::string batch_rows = "256,1024,4096";
  std::string device = "auto";
  std::string order = "sequential";
  penstock::pipeline::shuffled shuffled;
  penstock::gpu::budget budget{.device_bytes = 512_MiB, .pinned_bytes = 512_MiB};
  penstock::pipeline::transport_options transport;
  examples::timing timing;
  bool baseline = false;
  bool report = false;
  std::string json;
};

void add_source_options(CLI::App& app, options& o) {
  app.add_option("FILE", o.file, "HDF5 file, or a quoted pattern of files that are read one after another")->required();
  app.add_option("--dataset", o.datasets, "Path of a dataset; more than once for several")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--batch-rows", o.batch_rows, "Batch sizes: 256,1024 or 32:16384 (each twice the one before)")
      ->capture_default_str();
  app.add_option("--device", o.device, "host, cuda, cuda:N, or auto: the best there is")->capture_default_str();
  app.add_option("--order", o.order, "Order of the rows")
      ->check(CLI::IsMember({"sequential", "shuffled"}))
      ->capture_default_str();
  app.add_option("--seed", o.shuffled.seed, "Seed of the shuffled order")->capture_default_str();
  app.add_option("--run-rows", o.shuffled.run_rows, "Shuffled: rows that are read together; 0: from the dataset")
      ->capture_default_str();
  app.add_option("--pool-rows", o.shuffled.pool_rows, "Shuffled: rows that are drawn from; 0: from the dataset")
      ->capture_default_str();
}

void add_transport_options(CLI::App& app, options& o) {
  examples::add_bytes_option(app, "--device-memory", o.budget.device_bytes, "Budget of device memory");
  examples::add_bytes_option(app, "--pinned-memory", o.budget.pinned_bytes, "Budget of pinned host memory");
  examples::add_bytes_option(app, "--host-memory", o.budget.host_bytes,
                             "Budget of other host memory: indexes, scratch");
  examples::add_bytes_option(app, "--block-bytes", o.transport.block_bytes, "Bytes that travel together; 0: chosen");
  app.add_option("--slots", o.transport.slots, "Pinned slots; 0: chosen")->capture_default_str();
  app.add_option("--threads", o.transport.threads, "Blocks that are read at once; 0: chosen")->capture_default_str();
}

void add_timing_options(CLI::App& app, options& o) {
  app.add_option("--epochs", o.timing.epochs, "Epochs of a repetition; 0: as many as take 2 seconds")
      ->capture_default_str();
  app.add_option("--repeat", o.timing.repetitions, "Repetitions, of which the median is shown")
      ->check(examples::at_least(1))
      ->capture_default_str();
  app.add_flag("--baseline", o.baseline,
               "Put a plain loop beside it: one thread, H5Dread, one pinned copy for each batch, in the file's order");
  app.add_flag("--report", o.report, "Show after each figure what the stages did and waited for");
  app.add_option("--json", o.json, "Write the results to this file");
}

nlohmann::json to_json(const examples::figure& f) {
  return {{"dataset", f.dataset},
          {"batch_rows", f.batch_rows},
          {"rows_per_s", f.rows_per_second},
          {"gb_per_s", f.bytes_per_second / 1e9},
          {"checksum", fmt::format("{:016x}", f.checksum)}};
}

void print(const std::string& reader, const examples::figure& f) {
  fmt::print("{:<24} {:>10} {:<9} {:>14.0f} {:>9.3f}  {:016x}\n", f.dataset, f.batch_rows, reader, f.rows_per_second,
             f.bytes_per_second / 1e9, f.checksum);
  std::fflush(stdout);
}

/// One dataset that is to be measured.
struct task {
  examples::stream_request request;
  std::size_t row_bytes = 0;
};

/// What the options ask for. All that can be wrong with it is said here, before anything is measured.
std::vector<task> checked_tasks(const options& o, const std::vector<std::size_t>& batch_sizes) {
  examples::stream_request request{.file = o.file, .budget = o.budget, .transport = o.transport};
  request.device = penstock::gpu::device::parse(o.device);
  if (o.order == "shuffled") request.order = o.shuffled;
  std::vector<task> tasks;
  for (const auto& dataset : o.datasets) {
    request.dataset = dataset;
    const std::size_t row_bytes = examples::check(request, std::ranges::max(batch_sizes));
    if (o.baseline) examples::check_baseline(request, row_bytes);
    tasks.push_back({request, row_bytes});
  }
  std::vector<std::filesystem::path> inputs;
  for (const auto& where : penstock::io::datasets(o.file, o.datasets.front())) inputs.push_back(where.file);
  examples::check_output("--json", o.json, inputs);
  return tasks;
}

void measure(const task& what, std::size_t batch_rows, const options& o, nlohmann::json& results) {
  const auto streamed = examples::measure_pipeline(what.request, batch_rows, o.timing);
  print("penstock", streamed);
  if (o.report) fmt::print("{}\n", streamed.report);
  results["runs"].push_back(to_json(streamed));
  if (!o.baseline) return;
  const auto plain = examples::measure_baseline(what.request, what.row_bytes, batch_rows, o.timing);
  print("baseline", plain);
  results["baseline"].push_back(to_json(plain));
  if (plain.checksum != streamed.checksum)
    throw std::runtime_error(
        fmt::format("{}:{}: the baseline's checksum differs from Penstock's", what.request.file, what.request.dataset));
}

void measure_all(const options& o) {
  const auto batch_sizes = examples::parse_batch_sizes(o.batch_rows);
  const auto tasks = checked_tasks(o, batch_sizes);
  const std::string device = tasks.front().request.device.description();
  nlohmann::json results{{"device", device}, {"runs", nlohmann::json::array()}};
  fmt::print("{}, {}, device memory {}, pinned memory {}\n", device, o.order,
             penstock::format_bytes(o.budget.device_bytes), penstock::format_bytes(o.budget.pinned_bytes));
  fmt::print("{:<24} {:>10} {:<9} {:>14} {:>9}  checksum\n", "dataset", "batch rows", "reader", "rows/s", "GB/s");
  for (const task& what : tasks)
    for (const std::size_t batch_rows : batch_sizes) measure(what, batch_rows, o, results);
  if (!o.json.empty()) examples::write_json(o.json, results);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures rows/s and GB/s against the batch size. The consumer reads every byte on the device; its checksum is "
      "the sum of the "
      "rows' 32-bit words, the same for every order and batch size.",
      "penstock-throughput");
  options o;
  add_source_options(app, o);
  add_transport_options(app, o);
  add_timing_options(app, o);
  return examples::run_program(app, argc, argv, [&] { measure_all(o); });
}
