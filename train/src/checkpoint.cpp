#include "checkpoint.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/seal.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <span>

namespace penstock::train {
namespace {

using nlohmann::json;

constexpr int format_version = 3;
constexpr const char* attribute_name = "penstock";
constexpr const char* checksum_name = "penstock_checksum";  // of the attribute's text, which has those of the datasets
constexpr const char* lacks_a_value = "its attribute 'penstock' lacks a value; the file is damaged";
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

/// A count. What JSON converts by itself is any number, and one that does not fit is undefined: whoever forges a
/// checkpoint can give its counts fractions and exponents.
std::uint64_t count_of(const json& j) { return j.get_ref<const json::number_unsigned_t&>(); }
std::vector<std::size_t> counts_of(const json& j) {
  if (!j.is_array()) (void)count_of(j);  // throws
  std::vector<std::size_t> all;
  for (const json& each : j) all.push_back(count_of(each));
  return all;
}

json to_json(const metrics& m) {
  return {{"loss_sum", m.loss_sum},     {"correct", m.correct},       {"rows", m.rows},
          {"weight_sum", m.weight_sum}, {"square_sum", m.square_sum}, {"in_top_k", m.in_top_k}};
}
metrics metrics_of(const json& j) {
  return {.loss_sum = j.at("loss_sum"),
          .correct = count_of(j.at("correct")),
          .rows = count_of(j.at("rows")),
          .weight_sum = j.at("weight_sum"),
          .square_sum = j.at("square_sum"),
          .in_top_k = count_of(j.at("in_top_k"))};
}

json to_json(const judged_epochs& j) {
  return {{"epochs", j.epochs},
          {"best", j.best},
          {"best_value", j.best_value},
          {"reference", j.reference},
          {"waited", j.waited}};
}
/// JSON has no NaN: null stands for it.
double number_of(const json& j) { return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>(); }
judged_epochs judged_of(const json& j) {
  return {.epochs = count_of(j.at("epochs")),
          .best = count_of(j.at("best")),
          .best_value = number_of(j.at("best_value")),
          .reference = number_of(j.at("reference")),
          .waited = count_of(j.at("waited"))};
}

/// What must be the same for a run to go on as if it had never stopped, each with its words for people.
json identity_of(const learner& model, const trainer_options& options) {
  const stage_options& s = options.stage;
  if (!model.name().empty()) return {{"model", model.name()}, {"rows of a step", s.rows * options.accumulate}};
  return {{"model", to_text(s.model)},
          {"loss", to_text(s.loss)},
          {"targets", std::string(name_of(s.targets))},
          {"class weights", s.class_weights},
          {"optimizer", fmt::format("{} with {} moments", name_of(s.optimizer), moments(s.optimizer))},
          {"compute", std::string(name_of(s.compute))},
          {"seed", s.seed},
          {"rows of a step", s.rows * options.accumulate}};
}

std::size_t row_bytes(const state_item& item) {
  std::size_t bytes = size_of(item.element);
  for (std::size_t axis = 1; axis < item.shape.size(); ++axis) bytes *= item.shape[axis];
  return bytes;
}

/// Calls f(first_row, rows) for pieces of about piece_bytes.
template <class F>
void for_each_piece(const state_item& item, F f) {
  const std::uint64_t most = std::max<std::uint64_t>(1, piece_bytes / row_bytes(item));
  for (std::uint64_t first = 0; first < item.shape[0]; first += most) f(first, std::min(most, item.shape[0] - first));
}

std::string to_text(const checksum& sum) { return fmt::format("{:016x}", sum.value()); }

std::string checksum_of(std::span<const std::byte> bytes) {
  checksum sum;
  sum.add(bytes);
  return to_text(sum);
}

/// Gives the checksum.
std::string write_doubles(io::writer& to, const char* path, const std::vector<double>& values) {
  to.create(path, type::float64, {values.size()});
  to.write_rows(path, 0, values.size(), std::as_bytes(std::span(values)));
  return checksum_of(std::as_bytes(std::span(values)));
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& sentence) {
  throw error(fmt::format("{}: {}", file.string(), sentence), {.file = file.string()});
}

void check_sum(const std::filesystem::path& file, const std::string& what, const std::string& found,
               const std::string& written) {
  if (found != written)
    refuse(file, fmt::format("{} is damaged (its checksum is {}, and was {} when it was written); take another "
                             "checkpoint",
                             what, found, written));
}

json read_attributes(const std::filesystem::path& file) {
  io::check_seal(file);  // libhdf5 can crash on damaged metadata, and names of datasets have no checksum
  const auto text = io::read_attribute(file, "/", attribute_name);
  if (!text) refuse(file, "it is no checkpoint of Penstock (its root has no attribute 'penstock')");
  const json there = json::parse(*text, nullptr, false);
  if (there.is_discarded() || !there.is_object() || !there.contains("format"))
    refuse(file, "its attribute 'penstock' is damaged; take another checkpoint");
  if (there.at("format") != format_version)
    refuse(file, fmt::format("its format is {}, and this version of Penstock reads {}", there.at("format").dump(),
                             format_version));
  check_sum(file, "its attribute 'penstock'", checksum_of(std::as_bytes(std::span(*text))),
            io::read_attribute(file, "/", checksum_name).value_or("missing"));
  return there;
}

io::row_reader open_item(const std::filesystem::path& file, const std::string& path, type element,
                         const std::vector<std::uint64_t>& shape) {
  io::row_reader reader({{file, path}});
  std::vector<std::uint64_t> there{reader.rows()};
  there.insert(there.end(), reader.row_shape().begin(), reader.row_shape().end());
  if (there != shape || reader.element().element != element || reader.element().swapped)
    refuse(file,
           fmt::format("{} is {} of shape {}; this model's is {} of shape {}", path, name_of(reader.element().element),
                       fmt::join(there, " x "), name_of(element), fmt::join(shape, " x ")));
  reader.reserve({});
  return reader;
}

std::vector<double> read_doubles(const std::filesystem::path& file, const char* path, std::size_t count,
                                 const json& sums) {
  const io::row_reader reader = open_item(file, path, type::float64, {count});
  std::vector<double> values(count);
  reader.read(0, count, std::as_writable_bytes(std::span(values)));
  check_sum(file, path, checksum_of(std::as_bytes(std::span(values))), sums.at(path));
  return values;
}

void check_identity(const std::filesystem::path& file, const json& there, const learner& model,
                    const trainer_options& options) {
  const auto names = there.value("class_names", json::array());
  if (names != json(options.class_names))
    refuse(file, fmt::format("its classes are {}, and this run's are {}; train with the same labels, or start afresh",
                             names.empty() ? "numbers" : names.dump(),
                             options.class_names.empty() ? "numbers" : json(options.class_names).dump()));
  const json here = identity_of(model, options);
  const json& other = there.at("identity");
  for (const auto& [name, value] : here.items())
    if (!other.contains(name) || other.at(name) != value)
      refuse(file, fmt::format("its {} is {}, and this run's is {}; resume with the same options, or start afresh",
                               name, other.contains(name) ? other.at(name).dump() : "missing", value.dump()));
}

/// Calls f(offset, bytes) for the pieces of an item.
template <class F>
void read_pieces(const io::row_reader& from, const state_item& item, F f) {
  std::vector<std::byte> piece;
  const std::size_t bytes = row_bytes(item);
  for_each_piece(item, [&](std::uint64_t first, std::uint64_t rows) {
    piece.resize(rows * bytes);
    from.read(first, rows, piece);
    f(first * bytes, piece);
  });
}

/// Everything is opened and compared, and its checksum is right, before anything is written: so it is read twice.
input_statistics read_items(const std::filesystem::path& file, const json& there, const std::vector<state_item>& items,
                            std::size_t inputs, const item_writer& write) {
  const json& sums = there.at("checksums");
  std::vector<io::row_reader> readers;
  for (const state_item& item : items) readers.push_back(open_item(file, item.path, item.element, item.shape));
  input_statistics statistics;
  if (inputs != 0)  // a model of the user's takes its inputs as they are
    statistics = {read_doubles(file, "/normalisation/mean", inputs, sums),
                  read_doubles(file, "/normalisation/deviation", inputs, sums)};
  for (std::size_t n = 0; n < readers.size(); ++n) {
    checksum sum;
    read_pieces(readers[n], items[n], [&](std::size_t, const std::vector<std::byte>& piece) { sum.add(piece); });
    check_sum(file, items[n].path, to_text(sum), sums.at(items[n].path));
  }
  for (std::size_t n = 0; n < readers.size(); ++n)
    read_pieces(readers[n], items[n], [&](std::size_t offset, const std::vector<std::byte>& piece) {
      write(items[n], offset, piece.data(), piece.size());
    });
  return statistics;
}

mlp_options model_of(const json& there) {
  mlp_options model;
  model.inputs = count_of(there.at("inputs"));
  model.hidden = counts_of(there.at("hidden"));
  model.outputs = count_of(there.at("outputs"));
  model.activation = parse_activation(there.at("activation").get<std::string>());
  model.layer_norm = there.at("layer_norm");
  model.dropout = there.at("dropout");
  if (there.contains("pair")) {
    const json& pair = there.at("pair");
    model.pair.join = parse_join(pair.at("join").get<std::string>());
    model.pair.shared = pair.at("shared");
    model.pair.embedding = count_of(pair.at("embedding"));
    model.pair.head = counts_of(pair.at("head"));
  }
  return model;
}

/// What the stage's model can be made of again.
json describe(const stage_options& s) {
  return {{"inputs", s.model.inputs},
          {"hidden", s.model.hidden},
          {"outputs", s.model.outputs},
          {"activation", std::string(name_of(s.model.activation))},
          {"layer_norm", s.model.layer_norm},
          {"dropout", s.model.dropout},
          {"compute", std::string(name_of(s.compute))},
          {"loss", std::string(name_of(s.loss))}};
}

}  // namespace

predictor_options read_model(const std::filesystem::path& file) {
  const json there = read_attributes(file);
  if (!there.contains("hidden") && there.contains("identity"))
    refuse(file, "it holds a model of the user's own, which only that model can use");
  try {
    predictor_options options;
    options.model = model_of(there);
    options.compute = parse_type(there.at("compute").get<std::string>());
    const std::string loss = there.at("loss");
    options.form = loss == "softmax"                                                  ? prediction::softmax
                   : loss == "binary" || there.at("identity").at("loss") == "ranking" ? prediction::sigmoid
                                                                                      : prediction::output;
    return options;
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  } catch (const std::invalid_argument& e) {
    refuse(file, e.what());  // a name that this version does not know
  }
}

class_labels read_labels(const std::filesystem::path& file) {
  const json there = read_attributes(file);
  try {
    return {.names = there.value("class_names", std::vector<std::string>{}),
            .first = there.at("identity").at("targets") == name_of(target::label_from_one) ? 1 : 0};
  } catch (const json::exception&) {
    refuse(file, "its attribute 'penstock' lacks a value; the file is damaged");
  }
}

input_statistics load_weights(const std::filesystem::path& file, const mlp_options& model,
                              const std::vector<state_item>& items, const item_writer& write) {
  const predictor_options there = read_model(file);
  if (!(there.model == model))
    refuse(file, fmt::format("its model is {}, and this one {}", to_text(there.model), to_text(model)));
  try {
    return read_items(file, read_attributes(file), items, model.inputs, write);
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  }
}

void save_checkpoint(const std::filesystem::path& file, learner& from, const trainer_options& options,
                     const position& at, fault_seam faults) {
  const train::progress now = from.progress();
  io::writer to(file, std::move(faults));
  std::vector<std::byte> piece;
  json sums;
  for (const state_item& item : from.state()) {
    checksum sum;
    to.create(item.path, item.element, item.shape);
    const std::size_t bytes = row_bytes(item);
    for_each_piece(item, [&](std::uint64_t first, std::uint64_t rows) {
      piece.resize(rows * bytes);
      from.read_state(item, first * bytes, piece.data(), piece.size());
      to.write_rows(item.path, first, rows, piece);
      sum.add(piece);
    });
    sums[item.path] = to_text(sum);
  }
  const input_statistics statistics = from.normalisation();
  for (const auto& [path, values] : {std::pair{"/normalisation/mean", &statistics.mean},
                                     std::pair{"/normalisation/deviation", &statistics.deviation}})
    if (!values->empty()) sums[path] = write_doubles(to, path, *values);
  json attributes = {{"format", format_version},
                     {"identity", identity_of(from, options)},
                     {"optimizer", to_text(options.stage.optimizer)},
                     {"epoch", at.epoch},
                     {"next_row", at.next_batch * options.stage.rows},
                     {"class_names", options.class_names},
                     {"training", to_json(at.training)},
                     {"last", to_json(at.last)},
                     {"judged", to_json(at.judged)},
                     {"source", at.source},
                     {"checksums", sums},
                     {"steps", now.steps},
                     {"skipped", now.skipped},
                     {"loss_scale", now.loss_scale},
                     {"clean_steps", now.clean_steps},
                     {"algorithms", from.algorithms()}};
  if (from.stage() != nullptr) attributes.update(describe(options.stage));
  if (const pair_options& pair = options.stage.model.pair; pair.join != join::none)
    attributes["pair"] = {{"join", std::string(name_of(pair.join))},
                          {"shared", pair.shared},
                          {"embedding", pair.embedding},
                          {"head", pair.head}};
  const std::string text = attributes.dump(2);
  to.attribute("/", attribute_name, text);
  to.attribute("/", checksum_name, checksum_of(std::as_bytes(std::span(text))));
  to.commit_sealed();
}

resumed_run load_checkpoint(const std::filesystem::path& file, learner& to, const trainer_options& options) {
  const json there = read_attributes(file);
  try {
    check_identity(file, there, to, options);
    const train::progress progress{.steps = count_of(there.at("steps")),
                                   .skipped = count_of(there.at("skipped")),
                                   .loss_scale = there.at("loss_scale"),
                                   .clean_steps = count_of(there.at("clean_steps"))};
    const std::uint64_t next_row = count_of(there.at("next_row"));
    if (next_row % options.stage.rows != 0)
      refuse(file, fmt::format("it stands at row {} of an epoch, which is no multiple of batches of {} rows", next_row,
                               options.stage.rows));
    const position at{.epoch = count_of(there.at("epoch")),
                      .next_batch = next_row / options.stage.rows,
                      .training = metrics_of(there.at("training")),
                      .last = there.contains("last") ? metrics_of(there.at("last")) : metrics{},
                      .judged = there.contains("judged") ? judged_of(there.at("judged")) : judged_epochs{},
                      .source = there.at("source")};
    const input_statistics statistics =
        read_items(file, there, to.state(), to.stage() != nullptr ? options.stage.model.inputs : 0,
                   [&](const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
                     to.write_state(item, offset, from, bytes);
                   });
    to.set_normalisation(statistics);
    to.set_progress(progress);
    return {at, to.set_algorithms(there.value("algorithms", std::string()))};
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  }
}

}  // namespace penstock::train
