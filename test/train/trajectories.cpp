#include "fixture.hpp"
#include "reference_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

  /// Divided by what the rows of the step weigh.
  std::vector<double> mean_gradient() const {
    std::vector<double> mean;
    for (const T sum : stage.gradients()) mean.push_back(static_cast<double>(sum) / weight);
    return mean;
  }

  host_stage<T> stage;
  double weight = 0;

 private:
  std::vector<T> x_, values_;
  std::vector<std::int32_t> labels_;
};

/// Where the parameters of one weight or bias are.
struct tensor {
  std::string name;
  std::size_t first = 0, count = 0;
};

template <class T>
std::vector<tensor> tensors_of(const host_stage<T>& of) {
  std::vector<tensor> all;
  std::size_t first = 0;
  for (const train::state_item& item : of.stage.state()) {
    if (!item.path.starts_with("/model/")) continue;
    std::size_t count = 1;
    for (const std::uint64_t extent : item.shape) count *= extent;
    all.push_back({item.path, first, count});
    first += count;
  }
  BOOST_TEST_REQUIRE(first == of.parameters().size());
  return all;
}

/// The largest distance of two gradients in a tensor, by the largest value that the expected one has there.
double distance(const tensor& where, const std::vector<double>& found, const std::vector<double>& expected) {
  double worst = 0, largest = 0;
  for (std::size_t i = where.first; i < where.first + where.count; ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

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

// PyTorch's own gradients are kept of some steps. Of the others its weights are known to 1e-9 by the float64 run, which
// is PyTorch's in every loss and in the last weights (above), and in the gradients of the steps that are kept.
BOOST_AUTO_TEST_CASE(gradients_in_float32_are_those_of_pytorch_at_every_step_and_in_every_tensor) {
  const auto options = options_of_cases();
  const json cases = test::reference_cases("trajectories.json");
  for (std::size_t n = 0; n < options.size(); ++n) {
    reference_run<double> exact(cases[n], options[n]);
    reference_run<float> run(cases[n], options[n]);
    exact.set(cases[n].at("steps").at(0).at("parameters"));
    const std::vector<tensor> tensors = tensors_of(run.stage);
    BOOST_TEST_REQUIRE(tensors.size() == (n == 0 ? 6u : 10u));
    const auto compare = [&](std::size_t step, const std::vector<double>& found, const std::vector<double>& expected,
                             double within) {
      for (const tensor& each : tensors) {
        const double off = distance(each, found, expected);
        BOOST_TEST(off < within, cases[n].at("name") << ", step " << step << ", " << each.name << ": " << off);
      }
    };
    std::size_t kept = 0;
    for (std::size_t step = 0; step < 100; ++step) {
      exact.accumulate(step);
      std::vector<double> expected = exact.mean_gradient();
      std::vector<double> weights(exact.stage.parameters().begin(), exact.stage.parameters().end());
      if (const json& there = cases[n].at("steps"); kept < there.size() && there[kept].at("step") == step) {
        const std::vector<double> gradient = there[kept].at("gradient");
        compare(step, expected, gradient, 1e-9);
        expected = gradient;
        weights = there[kept++].at("parameters").get<std::vector<double>>();
      }
      run.set(weights);
      run.stage.stage.discard();  // the gradient of the step before
      run.accumulate(step);
      compare(step, run.mean_gradient(), expected, 2e-5);  // sums of a bias cancel; one of 1,600 is beyond 1e-5
      const tensor all{"all", 0, expected.size()};
      BOOST_TEST(distance(all, run.mean_gradient(), expected) < 1e-5, cases[n].at("name") << ", step " << step);
      exact.stage.stage.update(learning_rates[n]);
    }
    BOOST_TEST(kept == 7u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
