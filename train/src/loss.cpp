#include <penstock/train/loss.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace penstock::train {
namespace {

constexpr std::array<std::string_view, 3> target_names{"labels from 0", "labels from 1", "values"};
constexpr std::array<std::string_view, 5> loss_names{"softmax", "binary", "mse", "huber", "ranking"};

[[noreturn]] void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

void check_one(const softmax_cross_entropy& o, target, std::size_t outputs) {
  if (outputs < 2)
    refuse(fmt::format("a model of {} outputs; softmax cross-entropy needs one for each class, at least 2", outputs));
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
    refuse(fmt::format("a label smoothing of {}; it is a share, at least 0 and below 1", o.label_smoothing));
}

void check_one(const binary_cross_entropy& o, target targets, std::size_t outputs) {
  if (targets != target::values && outputs != 1)
    refuse(
        fmt::format("binary cross-entropy of {} outputs takes values as targets; labels are for one output, or for "
                    "softmax cross-entropy",
                    outputs));
  if (!(o.positive_weight > 0 && std::isfinite(o.positive_weight)))
    refuse(fmt::format("a positive weight of {}; it is above 0", o.positive_weight));
}

void check_one(const pairwise_ranking& o, target targets, std::size_t outputs) {
  if (targets != target::values && outputs != 1)
    refuse(fmt::format("ranking with {} outputs takes values as targets; labels are for one output", outputs));
  if (!(o.margin >= 0 && std::isfinite(o.margin))) refuse(fmt::format("a margin of {}; it is 0 or more", o.margin));
}

void require_values(std::string_view loss, target targets) {
  if (targets != target::values)
    refuse(fmt::format("{} takes values as targets, not labels; choose target::values, or a loss of classes", loss));
}

void check_one(const mean_squared_error&, target targets, std::size_t) { require_values("mse", targets); }

void check_one(const huber& o, target targets, std::size_t) {
  require_values("huber", targets);
  if (!(o.delta > 0 && std::isfinite(o.delta))) refuse(fmt::format("a delta of {}; it is above 0", o.delta));
}

}  // namespace

std::string_view name_of(target t) noexcept { return target_names[static_cast<std::size_t>(t)]; }

std::string_view name_of(const loss_options& loss) noexcept { return loss_names[loss.index()]; }

loss_options parse_loss(std::string_view name) {
  static const std::array<loss_options, loss_names.size()> all{softmax_cross_entropy{}, binary_cross_entropy{},
                                                               mean_squared_error{}, huber{}, pairwise_ranking{}};
  const auto found = std::find(loss_names.begin(), loss_names.end(), name);
  if (found == loss_names.end())
    refuse(fmt::format("'{}' is no loss; there are {}", name, fmt::join(loss_names, ", ")));
  return all[static_cast<std::size_t>(found - loss_names.begin())];
}

std::string to_text(const loss_options& loss) {
  std::string text(name_of(loss));
  if (const auto* o = std::get_if<softmax_cross_entropy>(&loss)) {
    if (o->label_smoothing > 0) text += fmt::format(", label smoothing {}", o->label_smoothing);
  } else if (const auto* binary = std::get_if<binary_cross_entropy>(&loss)) {
    if (binary->positive_weight != 1) text += fmt::format(", positive weight {}", binary->positive_weight);
  } else if (const auto* distance = std::get_if<huber>(&loss)) {
    text += fmt::format(", delta {}", distance->delta);
  } else if (const auto* ranking = std::get_if<pairwise_ranking>(&loss)) {
    if (ranking->margin != 0) text += fmt::format(", margin {}", ranking->margin);
  }
  return text;
}

std::size_t classes_of(const loss_options& loss, std::size_t outputs) noexcept {
  if (std::holds_alternative<softmax_cross_entropy>(loss)) return outputs;
  if (std::holds_alternative<binary_cross_entropy>(loss) || std::holds_alternative<pairwise_ranking>(loss))
    return std::max<std::size_t>(outputs, 2);
  return 0;
}

void check(const loss_options& loss, target targets, std::size_t outputs) {
  std::visit([&](const auto& o) { check_one(o, targets, outputs); }, loss);
}

}  // namespace penstock::train
