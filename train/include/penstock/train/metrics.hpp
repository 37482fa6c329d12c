#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::train {

/// Sums over rows that went through a stage: neither padding nor masked ones.
struct metrics {
  double loss_sum = 0;        ///< of weight times loss
  std::uint64_t correct = 0;  ///< rows whose prediction is the target; of several sigmoids, all. NaN among outputs, or
                              ///< +inf in a softmax: no prediction, nor in a confusion matrix; a sigmoid of +inf is yes
  std::uint64_t rows = 0;
  double weight_sum = 0;       ///< what loss() divides by
  double square_sum = 0;       ///< of weight times the mean squared distance, for losses of values
  std::uint64_t in_top_k = 0;  ///< rows whose class is among the top_k largest outputs

  /// Each is NaN where nothing was counted.
  double loss() const noexcept;
  double accuracy() const noexcept;
  double top_k_accuracy() const noexcept;
  /// The root of the mean squared distance of outputs from targets, for losses of values.
  double rmse() const noexcept;
};

/// Rows of each class (down) by the class that was predicted (across).
struct confusion_matrix {
  std::size_t classes = 0;
  std::vector<std::uint64_t> counts;  ///< classes x classes

  std::uint64_t of(std::size_t target, std::size_t predicted) const { return counts.at(target * classes + predicted); }
  /// The share of rows predicted as the class that are of it; 0 where there are none.
  double precision(std::size_t label) const;
  /// The share of rows of the class that are predicted as it; 0 where there are none.
  double recall(std::size_t label) const;
};

}  // namespace penstock::train
