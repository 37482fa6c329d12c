// Measures how fast a dataset reaches the device, against the batch size, and beside a plain loop.

#include <penstock/bytes.hpp>
#include <penstock/gpu/device.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/location.hpp>
#include <penstock/io/output_file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/dataset_missing.hpp"
#include "../common/gnuplot.hpp"
#include "../common/program.hpp"
#include "batch_sizes.hpp"
#include "limits.hpp"
#include "measure.hpp"
#include "price.hpp"
#include "results.hpp"

namespace {

using namespace penstock::literals;

struct options {
  std::string file;
  std::vector<std::string> files;  // as they are given: more than one is a mistake
  std::vector<std::string> datasets;
  std::string as;
  examples::stream_request fields;  // values and others of it
  std::string batch_rows = "256,1024,4096";
  std::string device = "auto";
  std::vector<std::string> orders{"sequential"};
  bool around_page_cache = false;
  penstock::pipeline::shuffled shuffled;
  penstock::gpu::budget budget{.device_bytes = 512_MiB, .pinned_bytes = 512_MiB};
  penstock::pipeline::transport_options transport;
  bool calibrate = false;
  examples::timing timing;
  bool baseline = false;
  bool resident = false;
  bool pread = false;
  bool report = false;
  std::string labels;
  std::string json, csv, plot, trace;
  std::vector<std::string> saved;
};

void add_source_options(CLI::App& app, options& o) {
  app.add_option("FILE", o.files, "HDF5 file, or a quoted pattern of files that are read one after another");
  app.add_option("--dataset", o.datasets, "Path of a dataset; more than once for several")->allow_extra_args(false);
  app.add_option(
         "--with", o.fields.others,
         "Path of a dataset whose rows come in the same batches, as they are stored; more than once for several")
      ->allow_extra_args(false);
  app.add_option("--as", o.as, "What values of --dataset are cast to on the device: float32, ...; default: as stored");
  app.add_option("--scale", o.fields.values.scale, "Factor of these values, after the cast")->capture_default_str();
  app.add_option("--shift", o.fields.values.shift, "What is added to them then")->capture_default_str();
  app.add_option("--batch-rows", o.batch_rows, "Batch sizes: 256,1024 or 32:16384 (each twice the one before)")
      ->capture_default_str();
  app.add_option("--device", o.device, "host, cuda, cuda:N, or auto: the best there is")->capture_default_str();
  app.add_option("--order", o.orders, "Orders of the rows: sequential, shuffled, random; more than one with commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"sequential", "shuffled", "random"}))
      ->capture_default_str();
  app.add_option("--seed", o.shuffled.seed, "Seed of the shuffled and the random order")->capture_default_str();
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
  app.add_flag("--around-page-cache", o.around_page_cache, "Read files around the page cache");
  app.add_option("--threads", o.transport.threads, "Blocks that are read at once; 0: chosen")->capture_default_str();
  app.add_flag("--calibrate", o.calibrate,
               "Choose blocks and slots, where they are not given, by trying several for a second before each figure");
}

void add_timing_options(CLI::App& app, options& o) {
  auto* epochs = app.add_option("--epochs", o.timing.epochs, "Epochs of a repetition; 0: as many as --seconds takes")
                     ->capture_default_str();
  app.add_option("--seconds", o.timing.seconds,
                 "Least seconds of a repetition: what takes less is not counted, and done again with more epochs")
      ->capture_default_str()
      ->excludes(epochs);
  app.add_option("--repeat", o.timing.repetitions, "Repetitions, of which the median is shown")
      ->check(examples::at_least(1))
      ->capture_default_str();
  app.add_flag("--baseline", o.baseline,
               "Put a plain loop beside it: one thread, H5Dread, one pinned copy for each batch, in the file's order");
  app.add_flag("--resident", o.resident,
               "Put the same consumer beside it, on rows that already lie in the device's memory");
  app.add_flag(
      "--pread", o.pread,
      "On the host: put plain positioned reads of a batch, or 1 MiB, on all processors beside it, each summing up "
      "what it read");
  app.add_flag("--report", o.report,
               "Show after each figure what the stages did and waited for, in the epochs that warm up too");
  app.add_option(
      "--mixing", o.labels,
      "Show before the figures what each order costs, and how well its batches mix the classes in this dataset "
      "of labels of FILE");
  app.add_option("--json", o.json, "Write the results to this file");
  app.add_option("--csv", o.csv, "Write the results to this file, a line for each figure");
  auto* plot =
      app.add_option("--plot", o.plot, "Draw GB/s against the batch size into this .svg or .png; takes gnuplot");
  app.add_option("--from", o.saved,
                 "With --plot: draw what --json wrote in earlier runs, here or elsewhere; measure nothing")
      ->needs(plot);
  app.add_option("--trace", o.trace, "Write what blocks went through at the last figure to this file, for Perfetto");
}

/// Nothing is measured then: no other option would have an effect.
void let_saved_results_stand_alone(CLI::App& app) {
  CLI::Option* const saved = app.get_option("--from");
  for (CLI::Option* const each : app.get_options())
    if (each != saved && each != app.get_help_ptr() && !each->check_name("--plot")) saved->excludes(each);
}

/// One dataset in one order.
struct task {
  examples::stream_request request;
  std::size_t row_bytes = 0;
  bool first_of_dataset = false;  ///< what does not depend on the order is measured with it
};

penstock::pipeline::order_options order_of(const std::string& name, const options& o) {
  if (name == "shuffled") return o.shuffled;
  if (name == "random") return penstock::pipeline::random{.seed = o.shuffled.seed};
  return penstock::pipeline::sequential{};
}

/// Options that would have no effect are mistakes.
void check_orders(const options& o) {
  for (std::size_t n = 0; n < o.orders.size(); ++n)
    if (std::find(o.orders.begin(), o.orders.begin() + static_cast<std::ptrdiff_t>(n), o.orders[n]) !=
        o.orders.begin() + static_cast<std::ptrdiff_t>(n))
      throw std::invalid_argument(fmt::format("--order names {} twice", o.orders[n]));
  const bool shuffles = std::ranges::count(o.orders, "shuffled") > 0;
  if (!shuffles && (o.shuffled.run_rows != 0 || o.shuffled.pool_rows != 0))
    throw std::invalid_argument("--run-rows and --pool-rows are of --order shuffled");
}

void check_timing(const options& o) {
  if (!(o.timing.seconds >= 1e-3 && o.timing.seconds <= 86400))  // nor what is no number
    throw std::invalid_argument(fmt::format("--seconds {}: give a number from 0.001 to 86400", o.timing.seconds));
}

void check_outputs(const options& o) {
  examples::input_files inputs;
  for (const auto* some : {&o.datasets, &o.fields.others})
    for (const std::string& dataset : *some) inputs.add(penstock::io::datasets(o.file, dataset));
  if (!o.labels.empty()) inputs.add(penstock::io::datasets(o.file, o.labels));
  examples::check_output("--json", o.json, inputs);
  examples::check_output("--csv", o.csv, inputs);
  examples::check_output("--trace", o.trace, inputs);
  examples::check_plot("--plot", o.plot, inputs);
  examples::check_apart({{"--json", o.json}, {"--csv", o.csv}, {"--plot", o.plot}, {"--trace", o.trace}});
}

/// What the options ask for. All that can be wrong with it is said here, before anything is measured.
std::vector<task> checked_tasks(const options& o, const std::vector<std::size_t>& batch_sizes) {
  examples::stream_request request{.file = o.file, .budget = o.budget, .transport = o.transport, .trace = o.trace};
  request.device = penstock::gpu::device::parse(o.device);
  request.around_page_cache = o.around_page_cache;
  request.values = o.fields.values;
  request.others = o.fields.others;
  if (!o.as.empty()) request.values.as = penstock::parse_type(o.as);
  if ((o.baseline || o.pread || o.resident) && !is_plain(request))
    throw std::invalid_argument(
        "--baseline, --pread and --resident are of one dataset as it is stored: measure without --with, --as, --scale "
        "and --shift");
  check_orders(o);
  check_timing(o);
  std::vector<task> tasks;
  for (const auto& dataset : o.datasets) {
    request.dataset = dataset;
    for (const auto& order : o.orders) {
      request.order_name = order;
      request.order = order_of(order, o);
      const std::size_t row_bytes = examples::check(request, std::ranges::max(batch_sizes));
      const bool first = order == o.orders.front();
      if (o.baseline && first) examples::check_baseline(request, row_bytes);
      if (o.pread && first) examples::check_pread(request);
      for (const std::size_t batch_rows : batch_sizes)
        if (o.resident && first) examples::check_resident(request, batch_rows);
      tasks.push_back({request, row_bytes, first});
    }
  }
  check_outputs(o);
  return tasks;
}

void keep(examples::figure f, examples::results& all) {
  print(f);
  all.figures.push_back(std::move(f));
}

void measure(task what, std::size_t batch_rows, const std::optional<penstock::pipeline::order_price>& price,
             const options& o, examples::limits_by_files& limits, examples::results& all) {
  if (o.calibrate) {
    what.request.calibrated = penstock::pipeline::calibrate(examples::describe_rows(what.request, batch_rows),
                                                            what.request.device, o.budget, examples::consumer_items());
    fmt::print("{}\n", to_text(*what.request.calibrated));
  }
  auto streamed = examples::measure_pipeline(what.request, batch_rows, o.timing);
  streamed.price = price;
  const std::uint64_t checksum = streamed.checksum;
  // After the first figure of these files: the page cache is as that one found and left it.
  const auto of_these = limits.of(what.request, batch_rows);
  examples::judge(streamed, of_these);
  const std::string report = o.report ? to_text(streamed.report) + "\n" : "";
  const std::uint64_t dropped = streamed.dropped_spans;
  keep(std::move(streamed), all);
  fmt::print("{}", report);
  if (dropped > 0) fmt::print("{} spans of the trace had no room; fewer epochs would do\n", dropped);
  if (!what.first_of_dataset) return;
  const auto compare = [&](examples::figure other) {
    const bool differs = other.whole && other.checksum != checksum;
    const std::string reader = other.reader;
    examples::judge(other, of_these);
    keep(std::move(other), all);
    if (differs)
      throw std::runtime_error(fmt::format("{}:{}: the {} checksum differs from Penstock's", what.request.file,
                                           what.request.dataset, reader));
  };
  if (o.baseline) compare(examples::measure_baseline(what.request, what.row_bytes, batch_rows, o.timing));
  if (o.pread) compare(examples::measure_pread(what.request, batch_rows, o.timing));
  if (o.resident) compare(examples::measure_resident(what.request, batch_rows, o.timing));
}

/// What each order costs, and how well it mixes, for each task and batch size; nothing where that was not asked for.
std::vector<std::optional<penstock::pipeline::order_price>> prices_of(const std::vector<task>& tasks,
                                                                      const std::vector<std::size_t>& batch_sizes,
                                                                      const options& o) {
  std::vector<std::optional<penstock::pipeline::order_price>> prices;
  for (const task& what : tasks)
    for (const std::size_t batch_rows : batch_sizes) {
      prices.emplace_back();
      if (!o.labels.empty()) prices.back() = examples::price_of(what.request, o.labels, batch_rows);
    }
  return prices;
}

/// One file that cannot be written takes no other with it: what was measured is not measured again in a minute.
void write(const examples::results& all, const options& o) {
  std::string failures;
  const auto attempt = [&](const std::string& file, const auto& work) {
    if (!file.empty()) try {
        work();
      } catch (const std::exception& e) {
        failures += fmt::format("{}{}", failures.empty() ? "" : "; ", e.what());
      }
  };
  attempt(o.json, [&] { examples::write_json(o.json, to_json(all)); });
  attempt(o.csv, [&] { penstock::io::write_file(o.csv, to_csv(all)); });
  attempt(o.plot, [&] { examples::draw(o.plot, plot_of(all)); });
  if (!failures.empty()) throw std::runtime_error(failures);
}

void say_where_storage_is_unknown(const examples::results& all, const options& o) {
  std::set<std::string> known, unknown;
  for (const examples::figure& f : all.figures)
    (f.report.limits.storage_bytes_per_second ? known : unknown).insert(f.dataset);
  if (unknown.empty()) return;
  const std::string which = known.empty() ? o.file : fmt::format("{}: {}", o.file, fmt::join(unknown, ", "));
  fmt::print("{} is too small to tell what its storage gives: n/a stands for a share of that\n", which);
}

/// After an error, which is what counts: it is told last.
void write_what_there_is(const examples::results& all, const options& o) {
  if (all.figures.empty() || (o.json.empty() && o.csv.empty() && o.plot.empty())) return;
  try {
    write(all, o);
    fmt::print("an error ends this; what was measured before it is written\n");
  } catch (const std::exception& e) {
    fmt::print(stderr, "penstock-throughput: {}\n", e.what());
  }
}

void measure_all(const options& o) {
  const auto batch_sizes = examples::parse_batch_sizes(o.batch_rows);
  const auto tasks = checked_tasks(o, batch_sizes);
  const auto prices = prices_of(tasks, batch_sizes, o);
  examples::results all{.device = tasks.front().request.device.description(), .figures = {}};
  fmt::print("{}, device memory {}, pinned memory {}\n", all.device, penstock::format_bytes(o.budget.device_bytes),
             penstock::format_bytes(o.budget.pinned_bytes));
  const auto for_each = [&](const auto& f) {
    auto price = prices.begin();
    for (const task& what : tasks)
      for (const std::size_t batch_rows : batch_sizes) f(what, batch_rows, *price++);
  };
  for_each([](const task& what, std::size_t batch_rows, const auto& price) {
    if (price)
      fmt::print("{} {}, batches of {} rows: {}\n", name_of(what.request), what.request.order_name, batch_rows,
                 to_text(*price));
  });
  examples::print_head();
  examples::limits_by_files limits;
  try {
    for_each([&](const task& what, std::size_t batch_rows, const auto& price) {
      measure(what, batch_rows, price, o, limits, all);
    });
  } catch (const std::exception& e) {
    all.ended_by = e.what();
    write_what_there_is(all, o);
    throw;
  }
  say_where_storage_is_unknown(all, o);
  write(all, o);
}

void draw_saved(const options& o) {
  examples::check_plot("--plot", o.plot, examples::input_files({o.saved.begin(), o.saved.end()}));
  examples::draw(o.plot, plot_of(examples::saved_results(o.saved)));
}

void measure_or_draw(options o) {
  if (!o.saved.empty()) return draw_saved(o);
  if (o.files.empty()) throw std::invalid_argument("FILE is missing: name a file; --help shows what there is");
  if (o.files.size() > 1)
    throw std::invalid_argument(fmt::format(
        "{}: FILE is one name: quote the pattern of several files, as 'part*.h5'; datasets are named with --dataset",
        o.files[1]));
  o.file = o.files.front();
  if (o.datasets.empty())
    throw examples::dataset_missing(penstock::io::file(penstock::io::datasets(o.file, "/").front().file), "--dataset");
  measure_all(o);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures rows/s and GB/s against the batch size. The consumer reads every byte on the device; its checksum is "
      "the sum of the rows' 32-bit words, the same for every order and batch size; of values that are cast, as they "
      "come "
      "out, and of several datasets, all together. Rates are of bytes as they are stored.",
      "penstock-throughput");
  options o;
  add_source_options(app, o);
  add_transport_options(app, o);
  add_timing_options(app, o);
  let_saved_results_stand_alone(app);
  return examples::run_program(app, argc, argv, [&] { measure_or_draw(o); });
}
