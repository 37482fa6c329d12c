#include "checkpoint.hpp"

#include "begun_step.hpp"
#include "checkpoint_classes.hpp"
#include "checkpoint_items.hpp"
#include "checkpoint_text.hpp"
#include "read_whole.hpp"
#include "step_state.hpp"

#include <penstock/foreign_json.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/seal.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace penstock::train {
namespace {

using nlohmann::json;

constexpr int format_version = 5;
constexpr int oldest_format = 4;  // it had names and weights of classes in its JSON
constexpr const char* attribute_name = "penstock";
constexpr const char* checksum_name = "penstock_checksum";  // of the attribute's text, which has those of the datasets
constexpr const char* lacks_a_value = "its attribute 'penstock' lacks a value; the file is damaged";

struct attributes {
  json values;
  std::string checksum;  ///< of their text
};

attributes read_text(const std::filesystem::path& file) {
  // libhdf5 can crash on damaged metadata, and names of datasets have no checksum.
  const bool sealed = io::check_seal(file);
  const auto text = io::read_attribute(file, "/", attribute_name);
  if (!text) refuse(file, "it is no checkpoint of Penstock (its root has no attribute 'penstock')");
  json there = parse_foreign_json<json>(*text);
  if (there.is_discarded() || !there.is_object() || !there.contains("format"))
    refuse(file, "its attribute 'penstock' is damaged; take another checkpoint");
  if (const json& format = there.at("format"); format != format_version && format != oldest_format)
    refuse(file, fmt::format("its format is {}, and this version of Penstock reads {} and {}", json_in_short(format),
                             oldest_format, format_version));
  std::string checksum = checksum_of(std::as_bytes(std::span(*text)));
  check_sum(file, "its attribute 'penstock'", checksum,
            io::read_attribute(file, "/", checksum_name).value_or("missing"));
  if (!sealed && there.contains("sealed") && there.at("sealed") == true)
    refuse(file,
           "its last bytes, with the checksum of the whole file, are missing or damaged; it was cut, or changed by "
           "another program: take another checkpoint");
  return {std::move(there), std::move(checksum)};
}

json read_attributes(const std::filesystem::path& file) { return read_text(file).values; }

/// Of arrays, as "numbers" where there is nothing else.
std::string words_of(const json& values, const char* none) { return values.empty() ? none : json_in_short(values); }

void check_identity(const std::filesystem::path& file, const json& there, const std::string& model,
                    const trainer_options& options) {
  const json here = identity_of(model, options);
  const json& other = there.at("identity");
  const auto compare = [&](const std::string& name) {
    const json& value = here.at(name);
    if (!other.contains(name) || other.at(name) != value)
      refuse(file,
             fmt::format("its {} is {}, and this run's is {}; resume with the same options, or start afresh", name,
                         other.contains(name) ? json_in_short(other.at(name)) : "missing", json_in_short(value)));
  };
  compare("model");  // of another one the rest says nothing
  const class_arrays own = classes_of(model, options);
  if (const auto names = class_names_in(file, there); names != own.names)
    refuse(file, fmt::format("its classes are {}, and this run's are {}; train with the same labels, or start afresh",
                             words_of(names, "numbers"), words_of(own.names, "numbers")));
  for (const auto& [name, value] : here.items()) compare(name);
  if (const auto weights = class_weights_in(file, there); weights != own.weights)
    refuse(file, fmt::format("its class weights are {}, and this run's are {}; resume with the same options, or start "
                             "afresh",
                             words_of(weights, "all 1"), words_of(own.weights, "all 1")));
}

/// What says how a stage of Penstock's predicts.
json read_stage(const std::filesystem::path& file) {
  json there = read_attributes(file);
  if (!there.contains("hidden") && there.contains("identity"))
    refuse(file, "it holds a model of the user's own, which only that model can use");
  return there;
}

predictor_options model_in(const std::filesystem::path& file) {
  const json there = read_stage(file);
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
    refuse(file, in_short(e.what()));  // a name that this version does not know
  }
}

class_labels labels_in(const std::filesystem::path& file) {
  const json there = read_stage(file);
  try {
    const std::string loss = there.at("loss");
    return {.names = class_names_in(file, there),
            .first = there.at("identity").at("targets") == name_of(target::label_from_one) ? 1 : 0,
            .decision = loss == "softmax"                       ? decision::largest
                        : loss == "binary" || loss == "ranking" ? decision::yes_or_no
                                                                : decision::none};
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  }
}

loaded_weights weights_in(const std::filesystem::path& file, const mlp_options& model,
                          const std::vector<state_item>& items, const item_writer& write) {
  const predictor_options there = model_in(file);
  if (!(there.model == model))
    refuse(file,
           fmt::format("its model is {}, and this one {}", in_short(to_text(there.model)), in_short(to_text(model))));
  try {
    attributes read = read_text(file);
    return {read_items(file, read.values, items, model.inputs, write), std::move(read.checksum)};
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  }
}

/// What else than the algorithms keeps a resumed run from the bits of the other; empty where nothing does.
std::string other_precision(const json& there, learner& model, const stage_options& here) {
  const std::string now(name_of(here.precision)), then = there.value("precision", now);
  if (model.stage() == nullptr || then == now) return {};
  return fmt::format("its matrix products were {}, and this run's are {}", in_short(then), now);
}

/// The same of options that may differ.
std::string other_arithmetic(const json& there, const learner& model, const trainer_options& options,
                             bool within_epoch) {
  json here = arithmetic_of(model, options);
  const json other = there.value("arithmetic", json::object());
  if (!within_epoch) here.erase(top_k_under_way);
  std::string text;
  for (const auto& [name, value] : here.items())
    if (other.contains(name) && other.at(name) != value)
      text += fmt::format("{}its {} was {}, and this run's is {}", text.empty() ? "" : "; ", name,
                          in_short(other.at(name).get<std::string>()), value.get<std::string>());
  return text;
}

/// Steps, and fp16's loss scale. A run of another precision has none: one that goes on in fp16 begins with its own.
train::progress progress_of(const std::filesystem::path& file, const json& there) {
  train::progress p{
      .steps = count_of(there.at("steps")), .skipped = count_of(there.at("skipped")), .loss_scale = first_loss_scale};
  if (there.value("precision", std::string()) != name_of(precision::fp16)) return p;
  p.loss_scale = there.at("loss_scale");
  p.clean_steps = count_of(there.at("clean_steps"));
  if (!(p.loss_scale > 0)) refuse(file, fmt::format("its loss scale is {}; it is above 0", p.loss_scale));
  return p;
}

/// The epochs that were judged by another quantity than this run watches are forgotten, and why is said.
std::string forget_judged(const early_stopping& rule, position& at) {
  if (at.judged.epochs == 0 || at.judged.watched == rule.watched) return {};
  const std::string why =
      fmt::format("its epochs were judged by their {}, and this run's are by their {}: those before are forgotten",
                  name_of(at.judged.watched), name_of(rule.watched));
  at.judged = {};
  at.judged_anew = true;
  return why;
}

/// What a checkpoint says of a run wherever it stands. `sums`: the checksums of its arrays, by their paths.
json description_of(learner& model, const trainer_options& options, const json& sums) {
  json all{{"format", format_version},
           {"sealed", true},
           {"identity", identity_of(model.name(), options)},
           {"optimizer", to_text(options.stage.optimizer)},
           {"classes", to_json(classes_of(model.name(), options))},
           {"arithmetic", arithmetic_of(model, options)},
           {"checksums", sums}};
  if (model.stage() != nullptr) all.update(description_of(options.stage));
  return all;
}

/// The row of the epoch that a run goes on with.
std::uint64_t next_row_in(const std::filesystem::path& file, const json& there, const trainer_options& options) {
  const std::uint64_t next_row = count_of(there.at("next_row"));
  if (next_row % options.stage.rows != 0)
    refuse(file, fmt::format("it stands at row {} of an epoch, which is no multiple of batches of {} rows", next_row,
                             options.stage.rows));
  return next_row;
}

resumed_run run_in(const std::filesystem::path& file, learner& to, const trainer_options& options, bool& torn) {
  const json there = read_attributes(file);
  try {
    check_identity(file, there, to.name(), options);
    const train::progress progress = progress_of(file, there);
    const std::uint64_t next_row = next_row_in(file, there, options);
    begun_in_file begun = begun_in(file, there, to, options);
    position at{.epoch = count_of(there.at("epoch")),
                .next_batch = next_row / options.stage.rows,
                .begun = begun.step,
                .training = metrics_of(there.at("training")),
                .last = there.contains("last") ? metrics_of(there.at("last")) : metrics{},
                .judged = there.contains("judged") ? judged_of(there.at("judged")) : judged_epochs{},
                .judged_on = there.at("judged_on"),
                .source = there.at("source")};
    std::vector<std::string> differences{other_precision(there, to, options.stage),
                                         other_arithmetic(there, to, options, next_row != 0 || at.begun.batches != 0),
                                         std::move(begun.left), forget_judged(options.stop, at)};
    std::vector<state_item> items = to.state();
    items.insert(items.end(), begun.gradients.begin(), begun.gradients.end());
    const input_statistics statistics =
        read_items(file, there, items, to.stage() != nullptr ? options.stage.model.inputs : 0,
                   [&](const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
                     torn = true;
                     if (item.path.starts_with(gradients_group)) return to.write_gradients(item, offset, from, bytes);
                     to.write_state(item, offset, from, bytes);
                   });
    to.set_normalisation(statistics);
    to.set_progress(progress);
    differences.push_back(in_short(to.set_algorithms(there.value("algorithms", std::string())), 2000));
    torn = false;
    std::erase(differences, "");
    return {at, fmt::format("{}", fmt::join(differences, "; "))};
  } catch (const json::exception&) {
    refuse(file, lacks_a_value);
  }
}

}  // namespace

predictor_options read_model(const std::filesystem::path& file) {
  return read_whole(file, [&] { return model_in(file); });
}

class_labels read_labels(const std::filesystem::path& file) {
  return read_whole(file, [&] { return labels_in(file); });
}

loaded_weights load_weights(const std::filesystem::path& file, const mlp_options& model,
                            const std::vector<state_item>& items, const item_writer& write) {
  return read_whole(file, [&] { return weights_in(file, model, items, write); });
}

void check_run(const std::filesystem::path& file, const trainer_options& options) {
  read_whole(file, [&] {
    const json there = read_attributes(file);
    try {
      check_identity(file, there, {}, options);
      return next_row_in(file, there, options);
    } catch (const json::exception&) {
      refuse(file, lacks_a_value);
    }
  });
}

resumed_run load_checkpoint(const std::filesystem::path& file, learner& to, const trainer_options& options,
                            bool& torn) {
  return read_whole(file, [&] { return run_in(file, to, options, torn); });
}

void check_describable(learner& model, const trainer_options& options) {
  constexpr std::size_t for_the_rest = std::size_t{1}
                                       << 20;  // where a run stands, its source, what products are made of
  constexpr std::size_t most = largest_foreign_json - for_the_rest;
  json sums;
  for (const auto* items : {&model.state(), &model.gradients()})
    for (const state_item& item : *items) sums[item.path] = checksum_of({});
  try {
    if (const std::size_t bytes = description_of(model, options, sums).dump(2).size(); bytes > most)
      throw std::invalid_argument(
          fmt::format("a checkpoint could not hold this run: the names of its model and of its {} arrays, and its "
                      "options, take {} bytes of JSON, and {} at most can be read back",
                      sums.size(), bytes, most));
  } catch (const json::exception&) {
    throw std::invalid_argument("a checkpoint could not hold this run: the path of an array of its model is no UTF-8");
  }
}

void save_checkpoint(const std::filesystem::path& file, learner& from, const trainer_options& options,
                     const position& at, fault_seam faults) {
  const train::progress now = from.progress();
  io::writer to(file, std::move(faults));
  json sums = write_items(to, from, at.begun.batches > 0);
  write_classes(to, classes_of(from.name(), options), sums);
  json attributes = description_of(from, options, sums);
  attributes.update({{"epoch", at.epoch},
                     {"next_row", at.next_batch * options.stage.rows},
                     {"training", to_json(at.training)},
                     {"last", to_json(at.last)},
                     {"judged", to_json(at.judged)},
                     {"judged_on", at.judged_on},
                     {"source", at.source},
                     {"steps", now.steps},
                     {"skipped", now.skipped},
                     {"loss_scale", now.loss_scale},
                     {"clean_steps", now.clean_steps},
                     {"algorithms", from.algorithms()}});
  if (at.begun.batches > 0) attributes["begun_step"] = to_json(at.begun, options);
  const std::string text = attributes.dump(2);
  if (!is_bounded_json(text))  // the file that is there stays
    refuse(file, fmt::format("it is not written: its JSON would have {} bytes, and {} at most can be read back",
                             text.size(), largest_foreign_json));
  to.attribute("/", attribute_name, text);
  to.attribute("/", checksum_name, checksum_of(std::as_bytes(std::span(text))));
  to.commit_sealed();
}

}  // namespace penstock::train
