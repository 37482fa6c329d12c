#include "results.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace examples {
namespace {

using nlohmann::json;

double bytes_of(const json& gb_per_s) { return gb_per_s.get<double>() * 1e9; }

figure figure_of(const json& run, const std::string& reader) {
  figure f;
  f.reader = reader;
  f.dataset = run.at("dataset").get<std::string>();
  f.order = run.at("order").get<std::string>();
  f.batch_rows = run.at("batch_rows").get<std::size_t>();
  f.bytes_per_second = bytes_of(run.at("gb_per_s"));
  return f;
}

void add(const json& saved, results& all) {
  if (all.device.empty()) all.device = saved.at("device").get<std::string>();
  if (!all.limits && saved.contains("storage_gb_per_s")) {
    all.limits = machine_limits{.storage_bytes_per_second = bytes_of(saved.at("storage_gb_per_s"))};
    if (saved.contains("link_gb_per_s")) all.limits->link_bytes_per_second = bytes_of(saved.at("link_gb_per_s"));
  }
  for (const std::string kind : {"runs", "baseline", "resident", "pread"}) {
    if (!saved.contains(kind)) continue;
    for (const json& run : saved.at(kind)) all.figures.push_back(figure_of(run, kind == "runs" ? "penstock" : kind));
  }
}

}  // namespace

results saved_results(const std::vector<std::string>& files) {
  results all;
  for (const std::string& file : files) try {
      std::ifstream in(file);
      if (!in) throw std::runtime_error("it cannot be read");
      const json saved = json::parse(in, nullptr, false);
      if (saved.is_discarded()) throw std::runtime_error("it is not JSON");
      add(saved, all);
    } catch (const std::exception& e) {
      throw std::runtime_error(
          fmt::format("{}: {}; results are what penstock-throughput's --json wrote", file, e.what()));
    }
  if (all.figures.empty())
    throw std::runtime_error(fmt::format("{}: there is no figure in it to draw", fmt::join(files, ", ")));
  return all;
}

}  // namespace examples
