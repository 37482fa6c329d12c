// Shows what an HDF5 file holds, and how Penstock would read each dataset.

#include <penstock/bytes.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/seal.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../common/program.hpp"
#include "digest.hpp"
#include "isolated.hpp"
#include "table.hpp"

namespace {

namespace io = penstock::io;
using namespace penstock::literals;

struct options {
  std::string file, dataset, json;
  bool digest = false, isolated = false;
  std::optional<std::uint64_t> seconds;
  std::size_t memory_bytes = 4_GiB;  // of the child
};

bool lacks_memory(const io::error& e) { return e.context().system == ENOMEM; }

/// One dataset for programs.
nlohmann::json describe(const io::dataset_info& d, const options& o) {
  nlohmann::json entry{{"path", d.path},
                       {"shape", d.shape},
                       {"plan", name_of(d.access)},
                       {"reason", d.reason},
                       {"layout", name_of(d.layout)},
                       {"stored_bytes", d.stored_bytes},
                       {"filters", nlohmann::json::array()}};
  entry["type"] = d.element ? nlohmann::json(d.element->numpy) : nlohmann::json(nullptr);
  entry["chunks"] = d.chunk_shape.empty() ? nlohmann::json(nullptr) : nlohmann::json(d.chunk_shape);
  for (const auto& f : d.filters) entry["filters"].push_back({{"id", f.id}, {"name", f.name}, {"values", f.values}});
  if (const auto cost = examples::cost_of_row(d)) entry["row_cost"] = *cost;
  if (!d.missing_sources.empty()) entry["missing_sources"] = d.missing_sources;
  if (!d.unreadable.empty()) entry["error"] = d.unreadable;
  if (!o.digest || entry.contains("error")) return entry;
  if (!d.element) {
    entry["error"] = "texts of variable length are read as class codes; they have no bytes of one size to digest";
    return entry;
  }
  try {
    const auto read = examples::digest(o.file, d.path);
    entry["crc32"] = read.crc32;
    entry["plan"] = name_of(read.access);
    entry["reason"] = read.reason;
  } catch (const io::error& e) {
    if (o.isolated && lacks_memory(e)) throw;
    entry["error"] = e.what();
  }
  return entry;
}

void print_digests(const nlohmann::json& entries, bool sealed) {
  fmt::print("\n");
  for (const auto& entry : entries)
    fmt::print("{}: {}\n", examples::printable(entry["path"]),
               entry.contains("crc32") ? "crc32 " + entry["crc32"].get<std::string>()
                                       : "no digest: " + examples::printable(entry["error"]));
  fmt::print("{}\n", sealed ? "the file ends with its checksum, which is right"
                            : "the file has no checksum of Penstock's at its end");
}

void inspect(const options& o) {
  const bool sealed = o.digest && io::check_seal(o.file);
  const io::file file(o.file);
  const auto datasets = o.dataset.empty() ? file.datasets() : std::vector{file.describe(o.dataset)};
  examples::input_files inputs({o.file});
  for (const auto& d : datasets) inputs.add({{o.file, d.path}});
  examples::check_output("--json", o.json, inputs);
  fmt::print("{}", examples::table(datasets, o.file));
  if (o.json.empty() && !o.digest) return;
  std::fflush(stdout);  // digests take their time
  auto entries = nlohmann::json::array();
  for (const auto& d : datasets) entries.push_back(describe(d, o));
  if (o.digest && o.json.empty()) print_digests(entries, sealed);
  if (o.json.empty()) return;
  nlohmann::json results{{"datasets", std::move(entries)}};
  if (o.digest) results["sealed"] = sealed;
  examples::write_json(o.json, results);
}

/// In the child process, where that is asked for. What its limit of memory refuses is a sentence about the file.
void inspect_isolated(const options& o) {
  if (!o.isolated) return inspect(o);
  examples::go_on_in_child(o.file, {.seconds = o.seconds.value_or(o.digest ? 0 : 300), .memory_bytes = o.memory_bytes});
  const auto refused = [&](const std::string& what) {
    return std::runtime_error(fmt::format(
        "{}: it takes more than {} of memory; it is damaged, or made to take all there is, or large: --memory allows "
        "more",
        what, penstock::format_bytes(o.memory_bytes)));
  };
  try {
    inspect(o);
  } catch (const io::error& e) {
    if (!lacks_memory(e) || o.memory_bytes == 0) throw;
    const std::string& dataset = e.context().dataset;
    throw refused(dataset.empty() ? o.file : o.file + ":" + dataset);
  } catch (const std::bad_alloc&) {
    if (o.memory_bytes == 0) throw;
    throw refused(o.file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app("Shows the datasets of an HDF5 file: shape, type, layout, filters, and how Penstock would read each.",
               "penstock-inspect");
  app.add_option("FILE", o.file, "The HDF5 file")->required();
  app.add_option("DATASET", o.dataset, "Path of one dataset in it; all without it");
  app.add_option("--json", o.json,
                 "Write the description to this file, as JSON; bytes of names that are no UTF-8 as \\xNN");
  app.add_flag("--digest", o.digest,
               "Read every dataset, and show the crc32 of its elements, and whether the file ends with a checksum of "
               "Penstock's; with --json, in the JSON alone (it is refused where that is of other bytes). Memory: "
               "pieces of 8 MiB or one row, "
               "chunks that these cut, and the index of the chunks");
  auto* isolated = app.add_flag(
      "--isolated", o.isolated,
      "Open the file in a child process, for files from strangers: should libhdf5 crash on it, that is a message");
  app.add_option(
         "--seconds", o.seconds,
         "With --isolated: end the child after so much processor time, or ten times as long by the clock; 0: never. "
         "Default: 300, with --digest 0")
      ->needs(isolated);
  examples::add_bytes_option(app, "--memory", o.memory_bytes,
                             "With --isolated: memory that the child may take, beside what the program itself has; 0: "
                             "any. What takes more is a message")
      ->needs(isolated);
  return examples::run_program(app, argc, argv, [&] { inspect_isolated(o); });
}
