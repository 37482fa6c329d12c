#include "results.hpp"

#include <penstock/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace examples {
namespace {

/// A value of CSV as RFC 4180 writes it.
std::string csv_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    result += c;
    if (c == '"') result += c;
  }
  return result + '"';
}

nlohmann::json to_json(const std::vector<penstock::pipeline::calibration::tried>& some) {
  auto all = nlohmann::json::array();
  for (const auto& one : some)
    all.push_back({{"block_bytes", one.block_bytes},
                   {"slots", one.slots},
                   {"slots_bytes", one.slots_bytes},
                   {"gb_per_s", one.bytes_per_second / 1e9}});
  return all;
}

/// What the consumer got, where that is not one dataset as it is stored.
void add_fields(const figure& f, nlohmann::json& run) {
  if (f.values.as) run["as"] = penstock::name_of(*f.values.as);
  if (f.values.scale != 1) run["scale"] = f.values.scale;
  if (f.values.shift != 0) run["shift"] = f.values.shift;
  if (!f.others.empty()) run["with"] = f.others;
}

nlohmann::json in_gb(std::optional<double> bytes) {
  return bytes ? nlohmann::json(*bytes / 1e9) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const figure& f) {
  nlohmann::json run = {{"dataset", f.dataset},
                        {"order", f.order},
                        {"batch_rows", f.batch_rows},
                        {"rows_per_s", f.rows_per_second},
                        {"gb_per_s", f.bytes_per_second / 1e9},
                        {"gb_per_s_min", f.least_bytes_per_second / 1e9},
                        {"gb_per_s_max", f.most_bytes_per_second / 1e9},
                        {"device_bytes_peak", f.device_bytes},
                        {"pinned_bytes_peak", f.pinned_bytes},
                        {"checksum", fmt::format("{:016x}", f.checksum)}};
  for (const repetition& one : f.repetitions)
    run["repetitions"].push_back({{"epochs", one.epochs}, {"seconds", one.seconds}});
  run["storage_gb_per_s"] = in_gb(f.report.limits.storage_bytes_per_second);
  if (const auto share = share_of_limit(f)) run["share_of_limit"] = *share;
  add_fields(f, run);
  if (f.price) {
    run["pool_bytes"] = f.price->pool_bytes;
    run["read_amplification"] = f.price->read_amplification;
    if (f.price->mixing) run["mixing"] = *f.price->mixing;
  }
  if (f.reader != "penstock") return run;
  run["first_batch_ms"] = f.first_batch_seconds * 1e3;
  run["bottleneck"] = f.report.bottleneck;
  run["choices"] = f.report.choices;
  if (f.calibrated) run["tried"] = {{"blocks", to_json(f.calibrated->blocks)}, {"slots", to_json(f.calibrated->slots)}};
  run["consumer_waited_s"] = f.report.consumer_wait_seconds;
  if (f.report.device_stall.applies) run["device_stalled_s"] = f.report.device_stall.seconds;
  for (const auto& wait : f.report.consumer_waits)
    if (wait.seconds > 0) run["consumer_waits"][wait.cause] = wait.seconds;
  return run;
}

}  // namespace

penstock::pipeline::machine_limits common_limits(const results& all) {
  if (all.saved_limits) return *all.saved_limits;
  if (all.figures.empty()) return {};
  auto common = all.figures.front().report.limits;
  for (const figure& f : all.figures)
    if (f.report.limits.storage_bytes_per_second != common.storage_bytes_per_second)
      common.storage_bytes_per_second.reset();
  return common;
}

std::optional<double> share_of_limit(const figure& f) {
  std::optional<double> most;
  const auto take = [&](double rate, double limit) {
    if (rate > 0 && limit > 0) most = std::max(most.value_or(0), rate / limit);
  };
  take(f.stored_bytes_per_second, f.report.limits.storage_bytes_per_second.value_or(0));
  take(f.copied_bytes_per_second, f.report.limits.link_bytes_per_second.value_or(0));
  return most;
}

void judge(figure& f, const penstock::pipeline::machine_limits& limits) {
  f.report.limits = limits;
  if (f.reader == "penstock") f.report.bottleneck = penstock::pipeline::bottleneck_of(f.report);
}

void print_head() {
  fmt::print("{:<24} {:<10} {:>10} {:<9} {:>12} {:>8} {:>16} {:>8} {:>9} {:>9} {:>9}  checksum\n", "dataset", "order",
             "batch rows", "reader", "rows/s", "GB/s", "least, most", "of limit", "first ms", "device", "pinned");
  std::fflush(stdout);  // with what was said before: the first figure takes a while
}

void print(const figure& f) {
  const auto share = share_of_limit(f);
  const bool uses_any = f.stored_bytes_per_second > 0 || f.copied_bytes_per_second > 0;
  fmt::print("{:<24} {:<10} {:>10} {:<9} {:>12.0f} {:>8.3f} {:>16} {:>8} {:>9} {:>9} {:>9}  {:016x}\n", f.dataset,
             f.order, f.batch_rows, f.reader, f.rows_per_second, f.bytes_per_second / 1e9,
             fmt::format("{:.3f}, {:.3f}", f.least_bytes_per_second / 1e9, f.most_bytes_per_second / 1e9),
             share      ? fmt::format("{:.0f} %", 100 * *share)
             : uses_any ? "n/a"
                        : "-",
             f.reader == "penstock" ? fmt::format("{:.1f}", f.first_batch_seconds * 1e3) : "-",
             penstock::format_bytes(f.device_bytes), penstock::format_bytes(f.pinned_bytes), f.checksum);
  if (f.reader == "penstock") fmt::print("    {}\n", f.report.bottleneck);
  std::fflush(stdout);
}

nlohmann::json to_json(const results& all) {
  nlohmann::json json{{"device", all.device}, {"runs", nlohmann::json::array()}};
  const auto limits = common_limits(all);
  json["storage_gb_per_s"] = in_gb(limits.storage_bytes_per_second);  // null: it is not known, or not one
  json["link_gb_per_s"] = in_gb(limits.link_bytes_per_second);        // null: the host has none
  for (const figure& f : all.figures) json[f.reader == "penstock" ? "runs" : f.reader].push_back(to_json(f));
  if (!all.ended_by.empty()) json["ended_by"] = all.ended_by;
  return json;
}

std::string to_csv(const results& all) {
  std::string text =
      "reader,dataset,order,batch_rows,rows_per_s,gb_per_s,gb_per_s_min,gb_per_s_max,link_gb_per_s,storage_gb_per_s,"
      "share_of_limit,first_batch_ms,device_bytes_peak,pinned_bytes_peak,mixing,checksum,bottleneck\n";
  const auto in_gb = [](std::optional<double> bytes) {
    return bytes ? fmt::format("{}", *bytes / 1e9) : std::string();
  };
  const auto optional_text = [](std::optional<double> value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const figure& f : all.figures)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:016x},{}\n", f.reader, csv_text(f.dataset), csv_text(f.order),
        f.batch_rows, f.rows_per_second, f.bytes_per_second / 1e9, f.least_bytes_per_second / 1e9,
        f.most_bytes_per_second / 1e9, in_gb(f.report.limits.link_bytes_per_second),
        in_gb(f.report.limits.storage_bytes_per_second), optional_text(share_of_limit(f)),
        f.reader == "penstock" ? fmt::format("{}", f.first_batch_seconds * 1e3) : std::string(), f.device_bytes,
        f.pinned_bytes, f.price && f.price->mixing ? fmt::format("{}", *f.price->mixing) : std::string(), f.checksum,
        csv_text(f.report.bottleneck));
  return text;
}

}  // namespace examples
