// Measures how fast a dataset reaches the device, against the batch size, and beside a plain loop.

#include <penstock/bytes.hpp>
#include <penstock/gpu/device.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
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
  app.add_option("FILE", o.file, "HDF5 file, or a pattern of files that are read one after another")->required();
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
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--baseline", o.baseline,
               "Put a plain loop beside it: one thread, H5Dread, one pinned copy for each batch");
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

void measure_all(const options& o) {
  examples::stream_request request{.file = o.file, .budget = o.budget, .transport = o.transport};
  request.device = penstock::gpu::device::parse(o.device);
  if (o.order == "shuffled") request.order = o.shuffled;

  nlohmann::json results{{"device", request.device.description()}, {"runs", nlohmann::json::array()}};
  fmt::print("{}, {}, device memory {}, pinned memory {}\n", request.device.description(), o.order,
             penstock::format_bytes(o.budget.device_bytes), penstock::format_bytes(o.budget.pinned_bytes));
  fmt::print("{:<24} {:>10} {:<9} {:>14} {:>9}  checksum\n", "dataset", "batch rows", "reader", "rows/s", "GB/s");
  for (const auto& dataset : o.datasets) {
    request.dataset = dataset;
    for (const std::size_t batch_rows : examples::parse_batch_sizes(o.batch_rows)) {
      const auto streamed = examples::measure_pipeline(request, batch_rows, o.timing);
      print("penstock", streamed);
      if (o.report) fmt::print("{}\n", streamed.report);
      results["runs"].push_back(to_json(streamed));
      if (!o.baseline) continue;
      const auto plain = examples::measure_baseline(request, batch_rows, o.timing);
      print("baseline", plain);
      results["baseline"].push_back(to_json(plain));
      if (plain.checksum != streamed.checksum)
        throw std::runtime_error("the baseline's checksum differs from Penstock's");
    }
  }
  if (!o.json.empty()) examples::write_json(o.json, results);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures rows/s and GB/s against the batch size. The consumer reads every byte on the device; its checksum is "
      "the sum "
      "of the rows' 32-bit words, the same for every order and batch size.",
      "penstock-throughput");
  options o;
  add_source_options(app, o);
  add_transport_options(app, o);
  add_timing_options(app, o);
  return examples::run_program(app, argc, argv, [&] { measure_all(o); });
}
