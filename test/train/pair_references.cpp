#include "fixture.hpp"
#include "reference_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <string>

using namespace penstock;
using penstock::test::host_stage;

namespace {

constexpr std::size_t reference_batch = 16;

/// A case of pairs.json: both inputs lie in one row of its x.
template <class T>
struct reference {
  static constexpr std::size_t inputs = 6;
  std::vector<T> a, b;
  std::vector<std::int32_t> better;
  host_stage<T> s;

  explicit reference(const nlohmann::json& each)
      : better(each.at("targets").get<std::vector<std::int32_t>>()), s(options_of(each.at("options"))) {
    for (const nlohmann::json& row : each.at("x"))
      for (std::size_t n = 0; n < 2 * inputs; ++n) (n < inputs ? a : b).push_back(row.at(n).get<T>());
  }
  void set(const std::vector<double>& parameters) {
    std::transform(parameters.begin(), parameters.end(), s.parameters().begin(),
                   [](double p) { return static_cast<T>(p); });
  }
  /// Adds the gradients of the step's batch; returns its mean loss.
  double accumulate(std::size_t step) {
    const std::size_t first = step * reference_batch % better.size();
    s.stage.reset();
    s.stage.accumulate({.x = &a[first * inputs],
                        .x2 = &b[first * inputs],
                        .targets = &better[first],
                        .rows = reference_batch,
                        .valid_rows = reference_batch});
    return s.stage.progress().running.loss();
  }

 private:
  static train::stage_options options_of(const nlohmann::json& o) {
    train::stage_options options{.model = {.inputs = inputs, .hidden = {8}, .outputs = 1},
                                 .loss = train::pairwise_ranking{},
                                 .optimizer = train::adamw{.weight_decay = 0.05},
                                 .rows = reference_batch};
    options.model.activation = train::activation::tanh;
    options.model.pair = {.join = train::parse_join(o.at("join").get<std::string>()),
                          .shared = o.at("shared"),
                          .embedding = o.at("embedding"),
                          .head = o.at("head").get<std::vector<std::size_t>>()};
    return options;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pairs_of_inputs_against_pytorch)

BOOST_AUTO_TEST_CASE(a_hundred_steps_are_those_of_pytorch) {
  for (const nlohmann::json& each : test::reference_cases("pairs.json")) {
    BOOST_TEST_CONTEXT(each.at("name")) {
      reference<double> run(each);
      run.set(each.at("steps").at(0).at("parameters"));
      const std::vector<double> losses = each.at("losses");
      for (std::size_t step = 0; step < losses.size(); ++step) {
        BOOST_TEST(std::abs(run.accumulate(step) - losses[step]) < 1e-9);
        run.s.stage.update(0.01);
      }
      const std::vector<double> last = each.at("last");
      BOOST_TEST_REQUIRE(last.size() == run.s.parameters().size());
      for (std::size_t i = 0; i < last.size(); ++i) BOOST_TEST(std::abs(run.s.parameters()[i] - last[i]) < 1e-9);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_in_float32_are_those_of_pytorch_to_a_hundred_thousandth) {
  for (const nlohmann::json& each : test::reference_cases("pairs.json"))
    for (const nlohmann::json& kept : each.at("steps")) {
      BOOST_TEST_CONTEXT(each.at("name") << ", step " << kept.at("step")) {
        reference<float> run(each);
        run.set(kept.at("parameters"));
        run.accumulate(kept.at("step"));
        const std::vector<double> gradient = kept.at("gradient");
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          worst = std::max(worst, std::abs(double(run.s.gradients()[i]) / reference_batch - gradient[i]));
          largest = std::max(largest, std::abs(gradient[i]));
        }
        BOOST_TEST(worst < 1e-5 * largest);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
