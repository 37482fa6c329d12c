#include "results.hpp"

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

double lowest(const machine_limits& limits) {
  return std::min(limits.link_bytes_per_second.value_or(limits.storage_bytes_per_second),
                  limits.storage_bytes_per_second);
}

void judge(figure& f, const machine_limits& limits) {
  f.report.limits.link_bytes_per_second = limits.link_bytes_per_second;
  if (limits.storage_bytes_per_second > 0) f.report.limits.storage_bytes_per_second = limits.storage_bytes_per_second;
  if (f.reader == "penstock") f.report.bottleneck = penstock::pipeline::bottleneck_of(f.report);
}

void print_head() {
  fmt::print("{:<24} {:<10} {:>10} {:<9} {:>14} {:>9} {:>9}  checksum\n", "dataset", "order", "batch rows", "reader",
             "rows/s", "GB/s", "of limit");
  std::fflush(stdout);  // with what was said before: the first figure takes a while
}

void print(const figure& f, const machine_limits& limits) {
  const double limit = lowest(limits);
  const std::string share = limit > 0 ? fmt::format("{:.0f} %", 100 * f.bytes_per_second / limit) : "-";
  fmt::print("{:<24} {:<10} {:>10} {:<9} {:>14.0f} {:>9.3f} {:>9}  {:016x}\n", f.dataset, f.order, f.batch_rows,
             f.reader, f.rows_per_second, f.bytes_per_second / 1e9, share, f.checksum);
  std::fflush(stdout);
}

nlohmann::json to_json(const results& all) {
  nlohmann::json json{{"device", all.device}, {"runs", nlohmann::json::array()}};
  if (all.limits) {
    json["storage_gb_per_s"] = all.limits->storage_bytes_per_second / 1e9;
    if (all.limits->link_bytes_per_second) json["link_gb_per_s"] = *all.limits->link_bytes_per_second / 1e9;
  }
  for (const figure& f : all.figures) json[f.reader == "penstock" ? "runs" : f.reader].push_back(to_json(f));
  return json;
}

std::string to_csv(const results& all) {
  std::string text =
      "reader,dataset,order,batch_rows,rows_per_s,gb_per_s,gb_per_s_min,gb_per_s_max,link_gb_per_s,storage_gb_per_s,"
      "first_batch_ms,device_bytes_peak,pinned_bytes_peak,mixing,checksum,bottleneck\n";
  const machine_limits limits = all.limits.value_or(machine_limits{});
  const std::string link =
      limits.link_bytes_per_second ? fmt::format("{}", *limits.link_bytes_per_second / 1e9) : std::string();
  for (const figure& f : all.figures)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:016x},{}\n", f.reader, csv_text(f.dataset), csv_text(f.order),
        f.batch_rows, f.rows_per_second, f.bytes_per_second / 1e9, f.least_bytes_per_second / 1e9,
        f.most_bytes_per_second / 1e9, link, limits.storage_bytes_per_second / 1e9,
        f.reader == "penstock" ? fmt::format("{}", f.first_batch_seconds * 1e3) : std::string(), f.device_bytes,
        f.pinned_bytes, f.price && f.price->mixing ? fmt::format("{}", *f.price->mixing) : std::string(), f.checksum,
        csv_text(f.report.bottleneck));
  return text;
}

}  // namespace examples
