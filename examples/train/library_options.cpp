// What the library is asked for, of what the command line says.

#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace examples {

penstock::train::loss_options loss_of(const train_options& o) {
  const bool softmax = o.loss == "softmax", binary = o.loss == "binary", ranking = o.loss == "ranking";
  const auto only_for = [&](bool asked, bool suits, const char* options, const char* losses) {
    if (asked && !suits)
      throw std::invalid_argument(fmt::format("{} for --loss {}, and this is {}", options, losses, o.loss));
  };
  only_for(o.label_smoothing != 0 || o.classes != 0, softmax, "--label-smoothing and --classes are", "softmax");
  only_for(o.one_hot || o.balanced_classes || !o.class_weights.empty() || o.top_k != 0, softmax,
           "--one-hot, --class-weights and --top-k are", "softmax");
  only_for(o.positive_weight != 1, binary, "--positive-weight is", "binary");
  only_for(o.labels_from != 0 || o.confusion, softmax || binary || ranking, "--labels-from and --confusion are",
           "softmax, binary or ranking");
  only_for(o.margin != 0, ranking, "--margin is", "ranking");
  only_for(o.delta.has_value(), o.loss == "huber", "--delta is", "huber");
  if (ranking && o.x2.empty())
    throw std::invalid_argument(
        "--loss ranking compares two inputs; name the dataset of the second ones with --x2, or take --loss binary for "
        "yes and no of one");
  penstock::train::loss_options loss = penstock::train::parse_loss(o.loss);
  if (auto* of_classes = std::get_if<penstock::train::softmax_cross_entropy>(&loss))
    of_classes->label_smoothing = o.label_smoothing;
  if (auto* of_two = std::get_if<penstock::train::binary_cross_entropy>(&loss))
    of_two->positive_weight = o.positive_weight;
  if (auto* of_values = std::get_if<penstock::train::huber>(&loss))
    of_values->delta = o.delta.value_or(of_values->delta);
  if (auto* of_pairs = std::get_if<penstock::train::pairwise_ranking>(&loss)) of_pairs->margin = o.margin;
  return loss;
}

penstock::train::pair_options pair_of(const train_options& o) {
  if (o.x2.empty()) return {};
  const bool by_score = o.loss == "ranking" && o.join == "difference" && o.head.empty();
  return {.join = penstock::train::parse_join(o.join),
          .shared = o.towers == "shared",
          .embedding = o.embedding != 0 ? o.embedding
                       : by_score       ? 1
                                        : 64,
          .head = o.head};
}

penstock::train::optimizer_options optimizer_of(const train_options& o) {
  if (o.optimizer == "sgd") {
    if (o.beta1 || o.beta2 || o.epsilon)
      throw std::invalid_argument("--beta1, --beta2 and --epsilon are for --optimizer adamw, and this is sgd");
    const penstock::train::sgd sgd{.learning_rate = o.learning_rate.value_or(0.05),
                                   .momentum = o.momentum.value_or(0.9),
                                   .nesterov = o.nesterov,
                                   .weight_decay = o.weight_decay.value_or(0)};
    penstock::train::check(sgd);
    return sgd;
  }
  if (o.momentum || o.nesterov)
    throw std::invalid_argument("--momentum and --nesterov are for --optimizer sgd, and this is adamw");
  penstock::train::adamw adamw;
  adamw.learning_rate = o.learning_rate.value_or(adamw.learning_rate);
  adamw.beta1 = o.beta1.value_or(adamw.beta1);
  adamw.beta2 = o.beta2.value_or(adamw.beta2);
  adamw.epsilon = o.epsilon.value_or(adamw.epsilon);
  adamw.weight_decay = o.weight_decay.value_or(adamw.weight_decay);
  penstock::train::check(adamw);
  return adamw;
}

penstock::train::schedule schedule_of(const train_options& o) {
  penstock::train::schedule schedule{.form = penstock::train::parse_schedule(o.schedule),
                                     .warmup_steps = o.warmup_steps,
                                     .epochs = std::max<std::uint64_t>(1, o.epochs)};
  using shape = penstock::train::schedule::shape;
  const auto only_for = [&](bool asked, shape suits, const char* options, const char* name) {
    if (asked && schedule.form != suits)
      throw std::invalid_argument(fmt::format("{} for --schedule {}, and this is {}", options, name, o.schedule));
  };
  only_for(o.final_factor.has_value(), shape::cosine, "--final-factor is", "cosine");
  only_for(o.step_epochs || o.step_factor, shape::steps, "--step-epochs and --step-factor are", "steps");
  schedule.final_factor = o.final_factor.value_or(schedule.final_factor);
  schedule.step_epochs = o.step_epochs.value_or(schedule.step_epochs);
  schedule.step_factor = o.step_factor.value_or(schedule.step_factor);
  penstock::train::check(schedule);
  return schedule;
}

}  // namespace examples
