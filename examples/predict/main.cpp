// Streams HDF5 datasets of any size through a trained model, and writes its predictions to HDF5 as they come.

#include "../common/existing_file.hpp"
#include "../common/numbers.hpp"
#include "../common/program.hpp"
#include "../common/signals.hpp"
#include "options.hpp"
#include "prediction_file.hpp"

#include <penstock/bytes.hpp>
#include <penstock/foreign_json.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/pipeline/error.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;
using namespace penstock::literals;

constexpr const char* nothing_written = "stopped; nothing is written";

std::vector<ps::io::location> in_all_files(const examples::predict_options& o, const std::string& dataset) {
  std::vector<ps::io::location> all;
  for (const std::string& pattern : o.files) {
    const auto found = ps::io::datasets(pattern, dataset);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

ps::train::predictor_options predictor_of(const examples::predict_options& o, const ps::train::class_labels& labels) {
  ps::train::predictor_options options = ps::train::options_of(o.checkpoint);
  options.rows = o.batch_rows;
  options.precision = ps::train::parse_precision(o.precision);
  options.threads = o.threads;
  options.workspace_bytes = std::clamp(o.budget.device_bytes / 16, 256_KiB, 4_MiB);  // a small budget has room for rows
  const std::size_t inputs = ps::train::sides(options.model);
  if (inputs != (o.x2.empty() ? 1u : 2u))
    throw std::invalid_argument(fmt::format("{} is a model of {}; {}", o.checkpoint,
                                            inputs == 1 ? "one input" : "two inputs",
                                            inputs == 1 ? "leave --x2 out" : "name the second with --x2"));
  if (o.classes && labels.decision == ps::train::decision::none)
    throw std::invalid_argument(fmt::format("--classes: {} is a model of values, not of classes", o.checkpoint));
  if (o.classes) options.form = ps::train::prediction::output;  // what evaluation goes by: no rounding makes equals
  return options;
}

/// Labels are read before weights: another checkpoint may have taken the name in between, of a run that goes on, with
/// the same labels, or of any.
void check_labels(const std::string& checkpoint, const ps::train::class_labels& before) {
  const auto now = ps::train::labels_of(checkpoint);
  if (now.names != before.names || now.first != before.first || now.decision != before.decision)
    throw std::runtime_error(
        fmt::format("{}: a checkpoint with other classes took its place while it was read; start again", checkpoint));
}

/// Before anything is planned: the rows are as wide as those that the model was trained on.
void check_width(const std::vector<ps::io::location>& x, const std::string& checkpoint,
                 const ps::train::predictor_options& options) {
  if (x.empty()) return;
  if (const std::size_t values = examples::values_of_a_row(x); values != options.model.inputs)
    throw ps::io::error(
        fmt::format("a row has {} values, and the model of {} takes {}", values, checkpoint, options.model.inputs),
        {.file = x.front().file.string(), .dataset = x.front().dataset});
}

using examples::rows_in_a_row;

/// Rows without predictions though their bytes are intact.
struct rows_not_finite {
  std::vector<rows_in_a_row> inputs{};   ///< one of their inputs is not finite
  std::vector<rows_in_a_row> outputs{};  ///< what comes of their inputs is not, though these are
};

std::vector<rows_in_a_row> rows_of(const std::vector<ps::pipeline::damaged_rows>& damaged) {
  std::vector<rows_in_a_row> rows;
  for (const ps::pipeline::damaged_rows& part : damaged) rows.push_back({part.first, part.count});
  return examples::joined(std::move(rows));
}

/// What helps where finite inputs give outputs that are not.
std::string what_helps(const examples::predict_options& o) {
  if (ps::train::parse_precision(o.precision) == ps::train::precision::fp16)
    return "nothing in fp16 is beyond 65504; compute in bf16 or float32 (--precision)";
  return fmt::format(
      "the weights of {} are not finite, or they and the inputs are so large that sums leave float32's range; train "
      "again with a lower learning rate, make the inputs smaller",
      o.checkpoint);
}

/// Throws where there is no prediction of rows (`none`, as they came out) though they are intact and their inputs are
/// finite. Where inputs are not, the predictor says so after its last row. Waits for the device where it is called for
/// rows that are intact.
void refuse(const std::vector<rows_in_a_row>& none, const examples::predict_options& o, ps::train::predictor& predictor,
            const ps::pipeline::pipeline& rows) {
  if (none.empty()) return;
  const auto intact = examples::without(none, rows_of(rows.report().damaged));
  if (intact.empty()) return;
  const std::uint64_t row = intact.front().first;
  if ((predictor.bad_input() & ~ps::train::progress::of_second_input) <= row) return;
  const auto place = rows.place_of("x", row);
  throw ps::train::error(
      fmt::format("{}:{} row {}: its outputs are not finite (NaN or infinity), though its inputs are: {}, or have such "
                  "rows left out (--skip-non-finite) (row {})",
                  place->file, place->dataset, place->row, what_helps(o), row),
      {.rows = {row}, .file = {}});
}

void list_not_finite(const char* what, const std::vector<rows_in_a_row>& parts, const ps::pipeline::pipeline& rows) {
  if (!parts.empty())
    fmt::print("rows with {} that are not finite, without predictions: {}\n", what, examples::count_of(parts));
  for (const rows_in_a_row& part : parts) {
    const auto place = rows.place_of("x", part.first);
    fmt::print("  {}:{} row {}{}\n", place->file, place->dataset, place->row,
               part.count == 1 ? "" : fmt::format(" and the {} behind it", part.count - 1));
  }
}

void list_damaged(const ps::pipeline::pipeline_report& report) {
  if (report.damaged_row_count == 0) return;
  fmt::print("damaged rows, without predictions: {}\n", report.damaged_row_count);
  for (const ps::pipeline::damaged_rows& part : report.damaged) fmt::print("  {}\n", part.why);
}

std::string name_of(const ps::io::location& where) { return where.file.string() + ":" + where.dataset; }

/// Which model made the predictions, and of which rows: JSON. Of many files the first and the last are named, and the
/// source's fingerprints tell them all. `checksum`: the checkpoint's that was loaded; another may have its name by now.
std::string origin_of(const std::string& checksum, const ps::train::predictor_options& options,
                      const std::vector<ps::io::location>& x, const ps::pipeline::pipeline& rows) {
  const nlohmann::json origin{{"format", 1},
                              {"model", ps::train::to_text(options.model)},
                              {"checkpoint_checksum", checksum},
                              {"first", name_of(x.front())},
                              {"last", name_of(x.back())},
                              {"files", x.size()},
                              {"source", nlohmann::json::parse(rows.state({}))}};
  return origin.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);  // names of files may be any bytes
}

/// Says which rows have no predictions, and ends the file before anything is printed: whoever reads that may go, and
/// the program with it. The rows come in the order of the source: what is listed is what the file lacks.
/// `not_finite.outputs`: as they came out, those of the other kinds among them.
void end_file(rows_not_finite not_finite, const ps::pipeline::pipeline& rows, const std::string& origin,
              examples::prediction_file& file, const examples::stop_on_signal& signals) {
  const ps::pipeline::pipeline_report report = rows.report();
  std::vector<rows_in_a_row> none = rows_of(report.damaged);
  const auto add_all = [&none](const std::vector<rows_in_a_row>& more) {
    none.insert(none.end(), more.begin(), more.end());
    none = examples::joined(std::move(none));
  };
  add_all(not_finite.inputs);
  not_finite.outputs = examples::without(not_finite.outputs, none);
  add_all(not_finite.outputs);
  for (const rows_in_a_row& part : none)
    if (!file.write_none(part, signals.token())) throw examples::interrupted(signals.signal(), nothing_written);
  file.commit(origin, report.damaged_row_count, examples::count_of(not_finite.inputs),
              examples::count_of(not_finite.outputs));
  list_not_finite("inputs", not_finite.inputs, rows);
  list_not_finite("outputs", not_finite.outputs, rows);
  list_damaged(report);
}

/// Streams the rows through the model into the file, and gives those of which there is no prediction.
rows_not_finite write_rows(const examples::predict_options& o, ps::train::predictor& predictor,
                           ps::pipeline::pipeline& rows, examples::prediction_file& file,
                           const examples::stop_on_signal& signals) {
  rows_not_finite found;
  const auto take = [&](std::uint64_t first, std::size_t count, std::span<const std::byte> values) {
    const auto none = file.write(first, count, values);
    if (!o.skip_non_finite) refuse(none, o, predictor, rows);
    for (const rows_in_a_row& part : none) examples::add(part, found.outputs);
  };
  const auto note = [&](std::uint64_t row) { examples::add({row, 1}, found.inputs); };
  try {
    predictor.predict(rows, "x", take, signals.token(), o.x2.empty() ? "" : "x2",
                      o.skip_non_finite ? ps::train::predictor::row_sink(note) : nullptr);
  } catch (const ps::pipeline::stopped&) {
    throw examples::interrupted(signals.signal(), nothing_written);
  }
  return found;
}

void predict(const examples::predict_options& o, examples::stop_on_signal& signals) {
  const std::vector<ps::io::location> x = in_all_files(o, o.x);
  const std::vector<ps::io::location> x2 = o.x2.empty() ? std::vector<ps::io::location>{} : in_all_files(o, o.x2);
  for (const auto* dataset : {&x, &x2}) examples::require_numbers(*dataset, "a model takes numbers");
  examples::input_files inputs({o.checkpoint});
  for (const auto* dataset : {&x, &x2}) inputs.add(*dataset);
  examples::check_output("--output", o.output, inputs, examples::output::hdf5);
  examples::check_own("--output", o.output, "penstock_predictions", "holds no predictions of penstock-predict");

  const auto labels = ps::train::labels_of(o.checkpoint);
  const auto options = predictor_of(o, labels);
  for (const auto* dataset : {&x, &x2}) check_width(*dataset, o.checkpoint, options);
  auto source = ps::pipeline::source{}.field("x", x, {.as = options.compute});
  if (!x2.empty()) source.field("x2", x2, {.as = options.compute});
  source.damaged(o.damaged);
  auto opened = (ps::pipeline::read(source) | ps::pipeline::batch_options{.rows = options.rows, .held = 0} |
                 ps::pipeline::transport_options{.threads = o.threads})
                    .open();
  const auto device = ps::gpu::device::parse(o.device);
  auto items = ps::train::plan(device, options);
  const auto plan = opened.plan(device, o.budget, items);
  items.add(plan.ledger);
  fmt::print("device: {}\nmodel: {}\n\n{}\n", device.description(), ps::in_short(ps::train::to_text(options.model)),
             ps::gpu::to_text(items, o.budget));
  std::fflush(stdout);
  if (o.plan_only) return;

  const auto memory = std::make_shared<ps::gpu::memory>(device, items);
  const ps::gpu::stream stream(device);
  ps::train::predictor predictor(stream, options, memory);
  const std::string checksum = predictor.load(o.checkpoint);
  check_labels(o.checkpoint, labels);
  auto rows = std::move(opened).build(plan, memory);
  const std::string origin = origin_of(checksum, options, x, rows);
  signals.begin();
  examples::prediction_file file(o.output, o.dataset, rows.rows(), options.model.outputs, options.compute, o.classes,
                                 labels);
  const auto start = std::chrono::steady_clock::now();
  end_file(write_rows(o, predictor, rows, file, signals), rows, origin, file, signals);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{} rows to {}{}, {:.0f} rows/s\n", rows.rows(), o.output, o.dataset,
             static_cast<double>(rows.rows()) / seconds.count());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Streams HDF5 datasets of any size through a trained model, within a fixed budget of memory.",
               "penstock-predict");
  examples::predict_options o;
  examples::add_predict_options(app, o);
  return examples::end_program(examples::run_program(app, argc, argv, [&] {
    examples::stop_on_signal signals("penstock-predict: stopped; nothing is written");
    predict(o, signals);
  }));
}
