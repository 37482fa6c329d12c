#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace penstock::train {

/// What is learned of each row.
enum class target : std::uint8_t {
  label,           ///< one int32, a class counted from 0
  label_from_one,  ///< one int32, a class counted from 1
  values           ///< one value of the compute type for each output: one-hot, probabilities, measurements
};
std::string_view name_of(target) noexcept;

// Losses of a row, as PyTorch defines them. The loss of several rows is the sum of weight times loss, divided by the
// sum of the weights: the rows' own, and with labels also those of their classes.

/// Cross-entropy of the softmax of the outputs, one output for each class. Targets: labels, or the probability of each
/// class, which add up to 1.
struct softmax_cross_entropy {
  double label_smoothing = 0;  ///< this share of the target is spread over all classes

  friend bool operator==(const softmax_cross_entropy&, const softmax_cross_entropy&) = default;
};

/// Cross-entropy of the sigmoid of each output, and their mean. Targets: values from 0 to 1; where there is one output,
/// labels of two classes too.
struct binary_cross_entropy {
  double positive_weight = 1;  ///< what a target of 1 counts, against one of 0

  friend bool operator==(const binary_cross_entropy&, const binary_cross_entropy&) = default;
};

/// The mean of the outputs' squared distances from their targets, which are values.
struct mean_squared_error {
  friend bool operator==(const mean_squared_error&, const mean_squared_error&) = default;
};

/// Half the square of distances up to delta, and beyond it delta * (distance - delta / 2): the mean over the outputs.
struct huber {
  double delta = 1;

  friend bool operator==(const huber&, const huber&) = default;
};

/// Which of two is better, each output being the difference of their scores. Targets: 1 where the first is better, 0
/// where the second is, or a value between; where there is one output, labels too. The mean over the outputs.
struct pairwise_ranking {
  /// 0: log(1 + exp(-lead)), the logistic loss (Burges and others, "Learning to rank using gradient descent", 2005).
  /// Above: max(0, margin - lead). The lead is the difference in favour of the better one.
  double margin = 0;

  friend bool operator==(const pairwise_ranking&, const pairwise_ranking&) = default;
};

using loss_options =
    std::variant<softmax_cross_entropy, binary_cross_entropy, mean_squared_error, huber, pairwise_ranking>;

/// "softmax", "binary", "mse", "huber" or "ranking".
std::string_view name_of(const loss_options& loss) noexcept;
/// The loss of that name with its defaults. Throws std::invalid_argument with the names there are.
loss_options parse_loss(std::string_view name);
/// "softmax, label smoothing 0.1".
std::string to_text(const loss_options& loss);
/// Classes that outputs and targets are told apart by; 0 where the loss is one of values.
std::size_t classes_of(const loss_options& loss, std::size_t outputs) noexcept;
/// Throws std::invalid_argument with what does not fit together, and what would.
void check(const loss_options& loss, target targets, std::size_t outputs);

}  // namespace penstock::train
