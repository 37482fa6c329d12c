// Gradients of every loss against float64 central differences, through a model with a hidden layer. Gradients of every
// layer: gradients.cpp, dropout.cpp; of two inputs: pairs.cpp.
#include "fixture.hpp"

#include <penstock/train/loss.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

constexpr std::size_t rows = 9, inputs = 4;

struct checked_loss {
  train::loss_options loss;
  train::target targets;
  std::size_t outputs;
  std::vector<double> class_weights{};
};

/// Targets that the loss takes: values of its range, or labels.
struct targets_of {
  std::vector<double> values;
  std::vector<std::int32_t> labels;

  explicit targets_of(const checked_loss& each) : values(rows * each.outputs), labels(rows) {
    const bool softmax = std::holds_alternative<train::softmax_cross_entropy>(each.loss);
    const bool shares = softmax || std::holds_alternative<train::binary_cross_entropy>(each.loss) ||
                        std::holds_alternative<train::pairwise_ranking>(each.loss);
    const std::size_t classes = std::max<std::size_t>(each.outputs, 2);
    for (std::size_t row = 0; row < rows; ++row) {
      labels[row] = static_cast<std::int32_t>(row % classes);
      double sum = 0;
      for (std::size_t c = 0; c < each.outputs; ++c)
        sum += values[row * each.outputs + c] = shares ? static_cast<double>((row * 7 + c * 3) % 5 + 1) / 6
                                                       : std::sin(static_cast<double>(row + 3 * c)) * 2;
      for (std::size_t c = 0; softmax && c < each.outputs; ++c) values[row * each.outputs + c] /= sum;
    }
  }
};

void check_gradients(const checked_loss& each) {
  const rows_of<double> data(rows, inputs, 2);
  const targets_of targets(each);
  const std::vector<double> weights{1, 0.5, 2, 0, 1, 3, 0.25, 1, 1};
  host_stage<double> s(
      {.model = {.inputs = inputs, .hidden = {5}, .outputs = each.outputs, .activation = train::activation::tanh},
       .loss = each.loss,
       .class_weights = each.class_weights,
       .targets = each.targets,
       .rows = rows,
       .seed = 3});
  const bool labels = each.targets == train::target::label;
  const train::batch_rows batch{.x = data.x.data(),
                                .targets = labels ? static_cast<const void*>(targets.labels.data())
                                                  : static_cast<const void*>(targets.values.data()),
                                .weights = weights.data(),
                                .rows = rows,
                                .valid_rows = rows};
  const auto loss_sum = [&] {
    s.stage.reset();
    s.stage.evaluate(batch);
    return s.stage.progress().running.loss_sum;
  };
  BOOST_TEST_CONTEXT(train::to_text(each.loss) << ", " << train::name_of(each.targets)) {
    s.stage.accumulate(batch);
    const std::vector<double> gradients = test::copy_of(s.gradients());
    double largest = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double& p = s.parameters()[i];
      const double kept = p;
      p = kept + 1e-6;
      const double above = loss_sum();
      p = kept - 1e-6;
      const double below = loss_sum();
      p = kept;
      BOOST_TEST(std::abs(gradients[i] - (above - below) / 2e-6) < 2e-7 * std::max(1.0, std::abs(gradients[i])));
      largest = std::max(largest, std::abs(gradients[i]));
    }
    BOOST_TEST(largest > 0.05);
    BOOST_TEST(s.stage.progress().bad_label == train::progress::no_row);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loss_gradients)

BOOST_AUTO_TEST_CASE(those_of_losses_of_classes_are_the_central_differences) {
  using train::target;
  const std::vector<double> class_weights{0.5, 2, 1};
  for (const double smoothing : {0.0, 0.1})
    for (const auto& weights : {std::vector<double>{}, class_weights})
      for (const target form : {target::label, target::values})
        check_gradients({train::softmax_cross_entropy{.label_smoothing = smoothing}, form, 3, weights});
  for (const double positive : {1.0, 2.5}) {
    check_gradients({train::binary_cross_entropy{.positive_weight = positive}, target::label, 1});
    check_gradients({train::binary_cross_entropy{.positive_weight = positive}, target::values, 3});
  }
}

BOOST_AUTO_TEST_CASE(those_of_losses_of_values_are_the_central_differences) {
  using train::target;
  check_gradients({train::mean_squared_error{}, target::values, 3});
  for (const double delta : {0.3, 5.0}) check_gradients({train::huber{.delta = delta}, target::values, 3});
  for (const double margin : {0.0, 0.7})
    check_gradients({train::pairwise_ranking{.margin = margin}, target::values, 2});
}

BOOST_AUTO_TEST_SUITE_END()
