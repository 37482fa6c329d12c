#include <penstock/train/optimizer.hpp>

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace penstock::train {
namespace {

void require(bool holds, std::string_view what, double value, std::string_view range) {
  if (!holds) throw std::invalid_argument(fmt::format("{} is {}; it must be {}", what, value, range));
}

void check_one(const sgd& o) {
  require(std::isfinite(o.learning_rate) && o.learning_rate >= 0, "the learning rate", o.learning_rate, "0 or more");
  require(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "at least 0 and below 1");
  require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight decay", o.weight_decay, "0 or more");
  require(!o.nesterov || o.momentum > 0, "momentum", o.momentum, "above 0 for Nesterov's form");
}

void check_one(const adamw& o) {
  require(std::isfinite(o.learning_rate) && o.learning_rate >= 0, "the learning rate", o.learning_rate, "0 or more");
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "at least 0 and below 1");
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "at least 0 and below 1");
  require(std::isfinite(o.epsilon) && o.epsilon > 0, "epsilon", o.epsilon, "above 0");
  require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight decay", o.weight_decay, "0 or more");
}

}  // namespace

std::string_view name_of(const optimizer_options& optimizer) noexcept {
  return std::holds_alternative<sgd>(optimizer) ? "sgd" : "adamw";
}

double learning_rate(const optimizer_options& optimizer) noexcept {
  if (const auto* o = std::get_if<sgd>(&optimizer)) return o->learning_rate;
  return std::get_if<adamw>(&optimizer)->learning_rate;
}

std::size_t moments(const optimizer_options& optimizer) noexcept {
  if (const auto* o = std::get_if<sgd>(&optimizer)) return o->momentum > 0 ? 1 : 0;
  return 2;
}

void check(const optimizer_options& optimizer) {
  std::visit([](const auto& o) { check_one(o); }, optimizer);
}

std::string to_text(const optimizer_options& optimizer) {
  if (const auto* o = std::get_if<sgd>(&optimizer))
    return fmt::format("sgd, learning rate {}, momentum {}{}, weight decay {}", o->learning_rate, o->momentum,
                       o->nesterov ? " (Nesterov)" : "", o->weight_decay);
  const auto& o = std::get<adamw>(optimizer);
  return fmt::format("adamw, learning rate {}, betas {} and {}, epsilon {}, weight decay {}", o.learning_rate, o.beta1,
                     o.beta2, o.epsilon, o.weight_decay);
}

}  // namespace penstock::train
