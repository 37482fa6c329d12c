#include "fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

constexpr std::size_t steps = 5, rows = 6;
const train::mlp_options model{.inputs = 3, .hidden = {}, .outputs = 2};

/// Steps a stage and, beside it, `formula(step, parameter, gradient, number)`, which is written out by hand.
template <class Formula>
void compare(const train::optimizer_options& optimizer, double rate, Formula formula) {
  const rows_of<double> data(rows, model.inputs, model.outputs);
  host_stage<double> s({.model = model, .optimizer = optimizer, .rows = rows, .seed = 2});
  std::vector<double> expected = test::copy_of(s.parameters());
  for (std::size_t t = 1; t <= steps; ++t) {
    s.accumulate(data, 0, rows);
    for (std::size_t i = 0; i < expected.size(); ++i) formula(t, expected[i], s.gradients()[i] / rows, i);
    s.stage.update(rate);
    for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(std::abs(s.parameters()[i] - expected[i]) < 1e-14);
    // Each step is compared from the same parameters.
    std::copy(expected.begin(), expected.end(), s.parameters().begin());
  }
  BOOST_TEST(s.stage.progress().steps == steps);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer)

BOOST_AUTO_TEST_CASE(plain_descent_keeps_no_moments) {
  compare(train::sgd{.momentum = 0}, 0.5, [](std::size_t, double& p, double g, std::size_t) { p -= 0.5 * g; });
  BOOST_TEST(train::moments(train::sgd{.momentum = 0}) == 0u);
}

BOOST_AUTO_TEST_CASE(momentum_follows_its_formula) {
  std::vector<double> v(8, 0.0);
  compare(train::sgd{.momentum = 0.9, .weight_decay = 0.1}, 0.5, [&](std::size_t, double& p, double g, std::size_t i) {
    v[i] = 0.9 * v[i] + (g + 0.1 * p);
    p -= 0.5 * v[i];
  });
}

BOOST_AUTO_TEST_CASE(nesterov_follows_its_formula) {
  std::vector<double> v(8, 0.0);
  compare(train::sgd{.momentum = 0.8, .nesterov = true}, 0.25, [&](std::size_t, double& p, double g, std::size_t i) {
    v[i] = 0.8 * v[i] + g;
    p -= 0.25 * (g + 0.8 * v[i]);
  });
}

BOOST_AUTO_TEST_CASE(adamw_follows_its_formula_and_decays_apart_from_the_gradient) {
  std::vector<double> m(8, 0.0), v(8, 0.0);
  compare(train::adamw{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2}, 0.01,
          [&](std::size_t t, double& p, double g, std::size_t i) {
            m[i] = 0.8 * m[i] + 0.2 * g;
            v[i] = 0.95 * v[i] + 0.05 * g * g;
            const double mean = m[i] / (1 - std::pow(0.8, static_cast<double>(t)));
            const double square = v[i] / (1 - std::pow(0.95, static_cast<double>(t)));
            p = p * (1 - 0.01 * 0.2) - 0.01 * mean / (std::sqrt(square) + 1e-6);
          });
}

BOOST_AUTO_TEST_CASE(a_gradient_beyond_the_norm_is_scaled_down_to_it_and_a_smaller_one_stays) {
  const rows_of<double> data(rows, model.inputs, model.outputs);
  const train::stage_options plain{.model = model, .optimizer = train::sgd{.momentum = 0}, .rows = rows, .seed = 2};
  host_stage<double> reference(plain);
  reference.accumulate(data, 0, rows);
  double squares = 0;
  for (const double g : reference.gradients()) squares += (g / rows) * (g / rows);
  const double norm = std::sqrt(squares);
  for (const double clip : {norm / 4, norm * 4}) {
    train::stage_options options = plain;
    options.clip_norm = clip;
    host_stage<double> s(options);
    const std::vector<double> before = test::copy_of(s.parameters());
    s.accumulate(data, 0, rows);
    s.stage.update(1);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double step = reference.gradients()[i] / rows * std::min(1.0, clip / norm);
      BOOST_TEST(std::abs(s.parameters()[i] - (before[i] - step)) < 1e-15);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_norm_of_an_update_without_rows_is_not_looked_at) {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const rows_of<double> good(rows, model.inputs, model.outputs);
  rows_of<double> bad = good;
  bad.x[4] = not_a_number;
  host_stage<double> s({.model = model,
                        .optimizer = train::sgd{.momentum = 0},
                        .rows = rows,
                        .clip_norm = 1,
                        .non_finite = train::non_finite::skip});
  // What lies in memory before the first pass.
  std::fill(s.gradients().begin(), s.gradients().end(), not_a_number);
  s.stage.update(1);
  BOOST_TEST(s.stage.progress().bad_loss == train::progress::no_row);
  BOOST_TEST(s.stage.progress().skipped == 0u);
  s.accumulate(bad, 0, rows);
  s.stage.update(1);
  BOOST_TEST(s.stage.progress().skipped == 1u);
  s.stage.update(1);  // of the same gradients
  s.stage.step({}, 1);
  BOOST_TEST(s.stage.progress().skipped == 1u);
  s.accumulate(good, 0, rows);
  s.stage.update(1);
  BOOST_TEST(s.stage.progress().steps == 1u);
}

BOOST_AUTO_TEST_CASE(values_outside_their_range_are_refused) {
  BOOST_CHECK_THROW(train::check(train::sgd{.learning_rate = -1}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::sgd{.momentum = 1}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::sgd{.momentum = 0, .nesterov = true}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::adamw{.beta2 = 1}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::adamw{.epsilon = 0}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::adamw{.weight_decay = std::nan("")}), std::invalid_argument);
}

// An output of 0 and a target of 1e10 make a loss of 1e20; times an input of 1e30 its gradient is beyond float32.
BOOST_AUTO_TEST_CASE(a_gradient_to_clip_that_is_not_finite_is_no_loss_that_is_not) {
  host_stage<float> s({.model = {.inputs = 1, .hidden = {}, .outputs = 1},
                       .loss = train::mean_squared_error{},
                       .targets = train::target::values,
                       .optimizer = train::sgd{.momentum = 0},
                       .rows = 1,
                       .clip_norm = 1});
  const float zero = 0, x = 1e30f, target = 1e10f;
  for (const auto& item : s.stage.state())
    s.stage.write_state(item, 0, reinterpret_cast<const std::byte*>(&zero), sizeof zero);
  s.stage.accumulate(&x, &target, 1, 1, 5);
  s.stage.update(1);
  const train::progress p = s.stage.progress();
  BOOST_TEST(std::isfinite(p.running.loss_sum));
  BOOST_TEST(p.bad_gradient == 5u);
  BOOST_TEST(p.bad_loss == train::progress::no_row);
  BOOST_TEST(p.steps == 0u);
  // A loss that is not finite by itself is its own reason.
  s.stage.set_steps(0);
  const float far = std::numeric_limits<float>::infinity();
  s.stage.accumulate(&x, &far, 1, 1, 6);
  s.stage.update(1);
  BOOST_TEST(s.stage.progress().bad_gradient == train::progress::no_row);
}

BOOST_AUTO_TEST_SUITE_END()
