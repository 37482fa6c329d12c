#include "fixture.hpp"
#include "reference_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace penstock;
using nlohmann::json;
using penstock::test::host_stage;

namespace {

constexpr std::size_t batch = 16;

/// The options of the file's cases, in order.
std::vector<train::stage_options> options_of_cases() {
  train::stage_options softmax{.model = {.inputs = 6, .hidden = {8, 5}, .outputs = 4},
                               .loss = train::softmax_cross_entropy{.label_smoothing = 0.1},
                               .optimizer = train::adamw{.weight_decay = 0.05},
                               .rows = batch};
  softmax.class_weights = {1, 0.5, 2, 1.5};
  return {softmax,
          {.model =
               {.inputs = 6, .hidden = {8, 5}, .outputs = 3, .activation = train::activation::gelu, .layer_norm = true},
           .loss = train::mean_squared_error{},
           .targets = train::target::values,
           .optimizer = train::sgd{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-3},
           .rows = batch,
           .clip_norm = 0.5}};
}

constexpr double learning_rates[] = {0.01, 0.05};

template <class T>
class reference_run {
 public:
  reference_run(const json& file, const train::stage_options& options) : stage(options) {
    for (const json& row : file.at("x"))
      for (const json& value : row) x_.push_back(value.get<T>());
    for (const json& target : file.at("targets")) {
      if (target.is_array())
        for (const json& value : target) values_.push_back(value.get<T>());
      else
        labels_.push_back(target.get<std::int32_t>());
    }
  }

  void set(const std::vector<double>& parameters) {
    std::transform(parameters.begin(), parameters.end(), stage.parameters().begin(),
                   [](double p) { return static_cast<T>(p); });
  }

  /// Adds the gradients of the step's batch; returns its mean loss.
  double accumulate(std::size_t step) {
    const std::size_t inputs = stage.options.model.inputs, first = step * batch % (x_.size() / inputs);
    const void* const targets =
        labels_.empty() ? static_cast<const void*>(&values_[first * stage.options.model.outputs]) : &labels_[first];
    stage.stage.reset();
    stage.stage.accumulate(&x_[first * inputs], targets, batch, batch);
    const train::metrics done = stage.stage.progress().running;
    weight = done.weight_sum;
    return done.loss();
  }

  host_stage<T> stage;
  double weight = 0;

 private:
  std::vector<T> x_, values_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(trajectories)

BOOST_AUTO_TEST_CASE(a_hundred_steps_in_float64_are_those_of_pytorch) {
  const auto options = options_of_cases();
  const json cases = test::reference_cases("trajectories.json");
  BOOST_TEST_REQUIRE(cases.size() == options.size());
  for (std::size_t n = 0; n < options.size(); ++n) {
    BOOST_TEST_CONTEXT(cases[n].at("name")) {
      reference_run<double> run(cases[n], options[n]);
      run.set(cases[n].at("steps").at(0).at("parameters"));
      const std::vector<double> losses = cases[n].at("losses");
      for (std::size_t step = 0; step < losses.size(); ++step) {
        BOOST_TEST(std::abs(run.accumulate(step) - losses[step]) < 1e-9);
        run.stage.stage.update(learning_rates[n]);
      }
      const std::vector<double> last = cases[n].at("last");
      for (std::size_t i = 0; i < last.size(); ++i) BOOST_TEST(std::abs(run.stage.parameters()[i] - last[i]) < 1e-9);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_in_float32_are_those_of_pytorch_to_a_hundred_thousandth) {
  const auto options = options_of_cases();
  const json cases = test::reference_cases("trajectories.json");
  for (std::size_t n = 0; n < options.size(); ++n)
    for (const json& kept : cases[n].at("steps")) {
      BOOST_TEST_CONTEXT(cases[n].at("name") << ", step " << kept.at("step")) {
        reference_run<float> run(cases[n], options[n]);
        run.set(kept.at("parameters"));
        run.accumulate(kept.at("step"));
        const std::vector<double> gradient = kept.at("gradient");
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          worst = std::max(worst, std::abs(run.stage.gradients()[i] / run.weight - gradient[i]));
          largest = std::max(largest, std::abs(gradient[i]));
        }
        BOOST_TEST(worst < 1e-5 * largest);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
