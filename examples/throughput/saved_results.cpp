#include "results.hpp"

#include <penstock/foreign_json.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace examples {
namespace {

using nlohmann::json;

const json& value_of(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) throw std::runtime_error(fmt::format("it lacks \"{}\"", name));
  return object.at(name);
}

std::string text_of(const json& object, const char* name) {
  const json& text = value_of(object, name);
  if (!text.is_string())
    throw std::runtime_error(fmt::format("its \"{}\" is {}, no text", name, penstock::json_in_short(text)));
  return text.get<std::string>();
}

/// Bytes per second.
double rate_of(const json& object, const char* name) {
  constexpr double most = 1e9;  // GB/s; beyond, gnuplot has no room for it
  const json& rate = value_of(object, name);
  if (!rate.is_number() || !(rate.get<double>() >= 0) || rate.get<double>() > most)
    throw std::runtime_error(fmt::format("its \"{}\" is {}, no rate", name, penstock::json_in_short(rate)));
  return rate.get<double>() * 1e9;
}

/// No more than one byte past what is parsed.
std::string content_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("it cannot be read");
  std::string text;
  for (std::array<char, 65536> part;
       text.size() <= penstock::largest_foreign_json && (in.read(part.data(), part.size()), in.gcount() > 0);)
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  return text;
}

figure figure_of(const json& run, const std::string& reader) {
  figure f;
  f.reader = reader;
  f.dataset = text_of(run, "dataset");
  if (run.contains("order")) f.order = text_of(run, "order");  // the first versions' figures have none
  const json& rows = value_of(run, "batch_rows");
  if (!rows.is_number_unsigned() || rows == 0)
    throw std::runtime_error(fmt::format("its \"batch_rows\" is {}, no number of rows", penstock::json_in_short(rows)));
  f.batch_rows = rows.get<std::size_t>();
  f.bytes_per_second = rate_of(run, "gb_per_s");
  return f;
}

void add(const json& saved, results& all) {
  const std::string device = text_of(saved, "device");
  if (all.device.empty()) all.device = device;
  if (!all.saved_limits && (saved.contains("storage_gb_per_s") || saved.contains("link_gb_per_s"))) {
    const auto limit = [&](const char* name) {
      const bool known = saved.contains(name) && !saved.at(name).is_null();
      return known ? std::optional(rate_of(saved, name)) : std::nullopt;
    };
    all.saved_limits = penstock::pipeline::machine_limits{.link_bytes_per_second = limit("link_gb_per_s"),
                                                          .storage_bytes_per_second = limit("storage_gb_per_s")};
  }
  for (const std::string kind : {"runs", "baseline", "resident", "pread"}) {
    if (!saved.contains(kind)) continue;
    if (!saved.at(kind).is_array()) throw std::runtime_error(fmt::format("its \"{}\" are no list", kind));
    for (const json& run : saved.at(kind)) all.figures.push_back(figure_of(run, kind == "runs" ? "penstock" : kind));
  }
}

}  // namespace

results saved_results(const std::vector<std::string>& files) {
  results all;
  for (const std::string& file : files) try {
      const json saved = penstock::parse_foreign_json<json>(content_of(file));
      if (saved.is_discarded()) throw std::runtime_error("it is not JSON, or longer or deeper than results are");
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
