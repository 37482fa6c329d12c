#include "training_log.hpp"

#include <penstock/foreign_json.hpp>
#include <penstock/io/output_file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace examples {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> columns_of(const result_form& form, bool tested) {
  std::vector<std::string> columns{"kind", "epoch", "step_of_epoch", "steps", "learning_rate", "loss"};
  const auto add_set = [&](const std::string& set) {
    json named;
    add_metrics(named, set, {}, form);
    for (const auto& [name, value] : named.items()) columns.push_back(name);
  };
  add_set("train");
  if (tested) {
    columns.push_back(form.testing_name + "_loss");
    add_set(form.testing_name);
  }
  columns.insert(columns.end(), {"skipped", "device_bytes", "rows_per_s", "gb_per_s", "seconds"});
  return columns;
}

/// Of a file that is there. One that cannot be read is no empty one: a log without lines is replaced.
std::vector<std::string> lines_of(const std::string& file) {
  errno = 0;
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (!in.is_open() || in.bad())
    throw std::runtime_error(fmt::format("{}: the log that is there cannot be read{}; name another file, or mend that",
                                         file, errno == 0 ? "" : fmt::format(" ({})", std::strerror(errno))));
  return lines;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line)
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  return cells;
}

/// JSON has no name for NaN and infinity; readers of CSV know nan and inf.
std::string cell_of(const json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  const bool special = value.is_number_float() && !std::isfinite(value.get<double>());
  return special ? fmt::format("{}", value.get<double>()) : value.dump();
}

/// Whether a line tells of what lies behind a place. Steps since the first epoch say nothing of that: one without any
/// weight is no step of the optimizer's, and is not skipped either.
bool is_before(const json& line, const log_position& at) {
  const auto epoch = line.at("epoch").get<std::uint64_t>();
  if (line.at("kind") == "epoch") return epoch <= at.epochs;
  return epoch <= at.under_way || (epoch == at.under_way + 1 && line.at("step_of_epoch") <= at.step);
}

bool is_there(const std::string& file) {
  std::error_code none;
  return fs::is_regular_file(file, none);
}

}  // namespace

void training_log::check_name(const std::string& file) {
  if (file.empty() || file.ends_with(".jsonl") || file.ends_with(".csv")) return;
  throw std::invalid_argument(
      fmt::format("--log {}: logs are .jsonl (a line of JSON each) or .csv; end its name so", file));
}

bool training_log::is_of_no_epoch(const std::string& file) {
  const auto begins_like = [](const std::string& line, const std::string& start) {
    return line.starts_with(start) || start.starts_with(line);  // the last one may have been cut short
  };
  const std::vector<std::string> lines = is_there(file) ? lines_of(file) : std::vector<std::string>{};
  return std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return begins_like(line, R"({"kind":"steps",)") || begins_like(line, "kind,epoch,") || begins_like(line, "steps,");
  });
}

training_log::training_log(std::string file, const result_form& form, bool tested, std::optional<log_position> resumed,
                           bool unchanged)
    : file_(std::move(file)), form_(form), csv_(file_.ends_with(".csv")), columns_(columns_of(form, tested)) {
  if (file_.empty()) return;
  const std::string lines = resumed && is_there(file_) ? take_over(*resumed) : header();
  if (!unchanged) penstock::io::write_file(file_, lines);
}

/// The lines that stay. One that was cut short by the end of the program is left out like those after it.
std::string training_log::take_over(const log_position& resumed) {
  const std::vector<std::string> lines = lines_of(file_);
  const std::size_t first = csv_ ? 1 : 0;
  if (csv_ && !lines.empty() && lines.front() + '\n' != header())
    throw std::runtime_error(fmt::format("{}: its columns are {}, and this run's are {}; name another log", file_,
                                         penstock::in_short(lines.front()), fmt::join(columns_, ",")));
  std::string kept = header();
  for (std::size_t n = first; n < lines.size(); ++n) {
    const json values = parse(lines[n]);
    if (values.is_null()) {
      if (n + 1 == lines.size()) break;
      throw std::runtime_error(
          fmt::format("{}: line {} is none of a log of penstock-train; name another file", file_, n + 1));
    }
    if (!is_before(values, resumed)) continue;
    kept += lines[n] + '\n';
    keep(values);
  }
  return kept;
}

/// Null where the line is no whole one.
json training_log::parse(const std::string& line) const {
  json values;
  if (!csv_) {
    values = penstock::parse_foreign_json<json>(line);
  } else {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != columns_.size()) return {};
    for (std::size_t n = 0; n < columns_.size(); ++n) {
      const json number = penstock::parse_foreign_json<json>(cells[n]);
      if (!cells[n].empty()) values[columns_[n]] = number.is_discarded() ? json(cells[n]) : number;
    }
  }
  const auto holds_number = [&](const char* name) { return values.contains(name) && values[name].is_number(); };
  const bool whole = values.contains("kind") && holds_number("epoch") && holds_number("step_of_epoch");
  return whole ? values : json();
}

void training_log::keep(const json& values) {
  if (values.at("kind") == "epoch") epochs_.push_back(values);
}

void training_log::add(const epoch_result& epoch) {
  json values = to_json(epoch);
  values["kind"] = "epoch";
  write(values);
}

void training_log::add_steps(const penstock::train::epoch_progress& at) {
  json values = to_json(epoch_result{.training = at, .form = form_});
  values["kind"] = "steps";
  for (const char* of_epochs : {"device_bytes", "rows_per_s", "gb_per_s"}) values.erase(of_epochs);
  write(values);
}

void training_log::write(const json& values) {
  keep(values);
  if (file_.empty()) return;
  // Of an epoch, whose checkpoint is on the disk too: who resumes from that finds the line.
  const bool of_epoch = values.at("kind") == "epoch";
  penstock::io::append_to_file(file_, line_of(values),
                               of_epoch ? penstock::io::durability::disk : penstock::io::durability::process);
}

std::string training_log::line_of(const json& values) const {
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    if (!csv_ && values.contains(column)) cells.push_back(fmt::format("\"{}\":{}", column, values.at(column).dump()));
    if (!csv_) continue;
    const json value = values.value(column, json());
    cells.push_back(cell_of(value));
  }
  return csv_ ? fmt::format("{}\n", fmt::join(cells, ",")) : fmt::format("{{{}}}\n", fmt::join(cells, ","));
}

std::string training_log::header() const { return csv_ ? fmt::format("{}\n", fmt::join(columns_, ",")) : ""; }

}  // namespace examples
