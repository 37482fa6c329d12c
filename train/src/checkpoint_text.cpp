#include "checkpoint_text.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>

#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace penstock::train {

using nlohmann::json;

namespace {

std::vector<std::size_t> counts_of(const json& j) {
  if (!j.is_array()) (void)count_of(j);  // throws
  std::vector<std::size_t> all;
  for (const json& each : j) all.push_back(count_of(each));
  return all;
}

std::string to_text(const schedule& s) {
  std::string text = "constant";
  if (s.form == schedule::shape::cosine) text = fmt::format("cosine to {} over {} epochs", s.final_factor, s.epochs);
  if (s.form == schedule::shape::steps)
    text = fmt::format("times {} after every {} epochs", s.step_factor, s.step_epochs);
  return s.warmup_steps == 0 ? text : fmt::format("{} after {} steps of warm-up", text, s.warmup_steps);
}

/// JSON has neither NaN nor infinity: null stands for both, and a sum that was one of them is no number from then on.
double number_of(const json& j) { return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>(); }

}  // namespace

std::uint64_t count_of(const json& j) { return j.get_ref<const json::number_unsigned_t&>(); }

json to_json(const metrics& m) {
  return {{"loss_sum", m.loss_sum},     {"correct", m.correct},       {"rows", m.rows},
          {"weight_sum", m.weight_sum}, {"square_sum", m.square_sum}, {"in_top_k", m.in_top_k}};
}
metrics metrics_of(const json& j) {
  return {.loss_sum = number_of(j.at("loss_sum")),
          .correct = count_of(j.at("correct")),
          .rows = count_of(j.at("rows")),
          .weight_sum = number_of(j.at("weight_sum")),
          .square_sum = number_of(j.at("square_sum")),
          .in_top_k = count_of(j.at("in_top_k"))};
}

json to_json(const judged_epochs& j) {
  return {{"epochs", j.epochs},       {"best", j.best},     {"best_value", j.best_value},
          {"reference", j.reference}, {"waited", j.waited}, {"watched", std::string(name_of(j.watched))}};
}
judged_epochs judged_of(const json& j) {
  return {.epochs = count_of(j.at("epochs")),
          .best = count_of(j.at("best")),
          .best_value = number_of(j.at("best_value")),
          .reference = number_of(j.at("reference")),
          .waited = count_of(j.at("waited")),
          .watched = j.at("watched") == name_of(quantity::accuracy) ? quantity::accuracy : quantity::loss};
}

json description_of(const stage_options& s) {
  json all{{"inputs", s.model.inputs},
           {"hidden", s.model.hidden},
           {"outputs", s.model.outputs},
           {"activation", std::string(name_of(s.model.activation))},
           {"layer_norm", s.model.layer_norm},
           {"dropout", s.model.dropout},
           {"compute", std::string(name_of(s.compute))},
           {"precision", std::string(name_of(s.precision))},
           {"loss", std::string(name_of(s.loss))}};
  if (const pair_options& pair = s.model.pair; pair.join != join::none)
    all["pair"] = {{"join", std::string(name_of(pair.join))},
                   {"shared", pair.shared},
                   {"embedding", pair.embedding},
                   {"head", pair.head}};
  return all;
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

json identity_of(const std::string& own_model, const trainer_options& options) {
  const stage_options& s = options.stage;
  if (!own_model.empty()) return {{"model", as_utf8(own_model)}, {"rows of a step", s.rows * options.accumulate}};
  return {{"model", to_text(s.model)},
          {"loss", to_text(s.loss)},
          {"targets", std::string(name_of(s.targets))},
          {"optimizer", fmt::format("{} with {} moments", name_of(s.optimizer), moments(s.optimizer))},
          {"compute", std::string(name_of(s.compute))},
          {"seed", s.seed},
          {"rows of a step", s.rows * options.accumulate}};
}

json arithmetic_of(const learner& model, const trainer_options& options) {
  const stage_options& s = options.stage;
  json all{{"schedule", to_text(options.schedule)},
           {"split of a step", fmt::format("{} x {} rows", options.accumulate, s.rows)}};
  if (!model.name().empty()) {
    all["learning rate"] = fmt::format("{}", learning_rate(s.optimizer));
    return all;
  }
  all["optimizer"] = to_text(s.optimizer);
  all["clipping"] = s.clip_norm > 0 ? fmt::format("at a norm of {}", s.clip_norm) : "none";
  if (std::holds_alternative<softmax_cross_entropy>(s.loss)) all[top_k_under_way] = fmt::format("{}", s.top_k);
  return all;
}

}  // namespace penstock::train
