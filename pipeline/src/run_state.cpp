#include "run_state.hpp"

#include "schedule.hpp"

#include <penstock/foreign_json.hpp>
#include <penstock/gpu/permutation.hpp>
#include <penstock/utf8.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <stdexcept>

namespace penstock::pipeline {
namespace {

using nlohmann::json;

constexpr int version = 1;
constexpr const char* names_of_last[] = {"keep", "drop", "pad"};

void mix_in(std::uint64_t& mixed, std::uint64_t value) { mixed = gpu::mix(mixed ^ value); }

void mix_in(std::uint64_t& mixed, std::string_view text) {
  mix_in(mixed, text.size());
  for (const char c : text) mix_in(mixed, static_cast<unsigned char>(c));
}

/// Tells apart what a field reads: names of files (not where they lie), datasets, the parts of them, their rows, type
/// and shape.
std::string identity(const io::row_reader& reader) {
  std::uint64_t mixed = version;
  for (const io::row_reader::segment& part : reader.segments()) {
    mix_in(mixed, part.where.file.filename().string());
    mix_in(mixed, part.where.dataset);
    mix_in(mixed, part.rows);
    if (part.where.row_axis != 0) mix_in(mixed, part.where.row_axis);
    for (const io::axis_range& some : part.where.region) {
      mix_in(mixed, some.axis);
      mix_in(mixed, some.first);
      mix_in(mixed, some.count);
    }
  }
  mix_in(mixed, name_of(reader.element().element));
  for (const std::uint64_t extent : reader.row_shape()) mix_in(mixed, extent);
  return fmt::format("{:016x}", mixed);
}

json identity(const ground& on) {
  json fields = json::object();
  for (std::size_t i = 0; i < on.readers.size(); ++i)
    fields[as_utf8(on.parts->from.fields()[i].name)] = identity(on.readers[i]);
  const batch_options& batches = on.parts->batch;
  json known{{"penstock_state", version},
             {"rows", on.rows.rows_of_all()},
             {"fields", std::move(fields)},
             {"order", on.rows.description()},
             {"batch_rows", batches.rows * on.rows.ranks()},
             {"last_batch", names_of_last[static_cast<std::size_t>(batches.last)]}};
  if (const auto print = on.rows.rows_fingerprint()) known["selected"] = fmt::format("{:016x}", print);
  if (const auto print = on.rows.draws_fingerprint()) known["drawn_by"] = fmt::format("{:016x}", print);
  return known;
}

/// The first field, by name, in which a state differs from what is read here: a fingerprint of it would tell nobody.
std::string other_fields(const json& there, const json& here) {
  for (const auto& [name, fingerprint] : here.items()) {
    if (!there.contains(name)) return fmt::format("field '{}' is not in the state", name);
    if (there[name] != fingerprint)
      return fmt::format("field '{}' reads other files, datasets, rows or a type than in the state", name);
  }
  for (const auto& [name, fingerprint] : there.items())
    if (!here.contains(name)) return fmt::format("it has a field '{}', and here there is none", in_short(name));
  return "its fields are others";
}

std::string difference(const std::string& key, const json& there, const json& here) {
  if (key == "fields" && there.is_object()) return other_fields(there, here);
  return fmt::format("its {} is {}, and this pipeline's {}", key, json_in_short(there), json_in_short(here));
}

}  // namespace

std::string write_state(const ground& on, run_position next) {
  json state = identity(on);
  state["epoch"] = next.epoch;
  state["batch"] = next.batch;
  return state.dump();
}

run_position read_state(const ground& on, std::string_view text) {
  const json state = parse_foreign_json<json>(text);
  if (!state.is_object() || !state.contains("penstock_state"))
    throw std::invalid_argument("this is not the state of a run; give the JSON text that pipeline::state() returned");
  if (state["penstock_state"] != version)
    throw std::invalid_argument(
        fmt::format("the state has format {}, and this version of Penstock reads format {}; go "
                    "on with the version that wrote it",
                    json_in_short(state["penstock_state"]), version));
  const json known = identity(on);
  for (const auto& [key, here] : known.items())
    if (const json there = state.value(key, json()); there != here)
      throw std::invalid_argument("the state is of another run: " + difference(key, there, here));
  if (state.contains("selected") && !on.rows.rows_fingerprint())
    throw std::invalid_argument("the state is of another run: only some rows take part in it, and here all do");
  if (state.contains("drawn_by") && !on.rows.draws_fingerprint())
    throw std::invalid_argument("the state is of another run: rows are drawn in it, and here they are not");
  const json epoch = state.value("epoch", json()), batch = state.value("batch", json());
  if (!epoch.is_number_unsigned() || !batch.is_number_unsigned())
    throw std::invalid_argument("the state says no epoch and batch; it is incomplete");
  const run_position at{epoch.get<std::uint64_t>(), batch.get<std::uint64_t>()};
  const batch_options& batches = on.parts->batch;
  const std::uint64_t in_epoch = schedule::batches_per_epoch(on.rows, batches.rows, batches.last);
  if (at.batch > in_epoch || at.epoch > most_epochs)
    throw std::invalid_argument(
        fmt::format("the state stands at batch {} of epoch {}, where no run comes: an epoch has {} batches; it was "
                    "changed or damaged",
                    at.batch, at.epoch, in_epoch));
  return at;
}

}  // namespace penstock::pipeline
