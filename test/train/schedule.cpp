#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/train/schedule.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using penstock::train::factor;
using penstock::train::schedule;
using shape = penstock::train::schedule::shape;

BOOST_AUTO_TEST_SUITE(schedules)

BOOST_AUTO_TEST_CASE(the_default_never_changes) {
  for (const std::uint64_t step : {0u, 1u, 1000u}) BOOST_TEST(factor({}, step, 10) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_warm_up_rises_in_equal_steps_to_the_full_rate) {
  const schedule s{.warmup_steps = 4};
  BOOST_TEST(factor(s, 0, 10) == 0.25);
  BOOST_TEST(factor(s, 2, 10) == 0.75);
  BOOST_TEST(factor(s, 3, 10) == 1.0);
  BOOST_TEST(factor(s, 4, 10) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_cosine_falls_from_the_full_rate_through_its_middle_to_its_end) {
  const schedule s{.form = shape::cosine, .warmup_steps = 20, .epochs = 12, .final_factor = 0.1};
  BOOST_TEST(factor(s, 20, 10) == 1.0);
  BOOST_TEST(std::abs(factor(s, 70, 10) - 0.55) < 1e-15);                                 // halfway from 20 to 120
  BOOST_TEST(std::abs(factor(s, 45, 10) - (0.1 + 0.45 * (1 + std::sqrt(0.5)))) < 1e-15);  // a quarter: cos(pi / 4)
  BOOST_TEST(factor(s, 120, 10) == 0.1);
  BOOST_TEST(factor(s, 5000, 10) == 0.1);
}

BOOST_AUTO_TEST_CASE(steps_multiply_after_so_many_epochs) {
  const schedule s{.form = shape::steps, .step_epochs = 3, .step_factor = 0.5};
  BOOST_TEST(factor(s, 29, 10) == 1.0);
  BOOST_TEST(factor(s, 30, 10) == 0.5);
  BOOST_TEST(factor(s, 95, 10) == 0.125);
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  BOOST_TEST(factor({.form = shape::steps, .step_epochs = half, .step_factor = 0.5}, 7, 2) == 1.0);  // 2^64 steps
}

BOOST_AUTO_TEST_CASE(what_makes_no_schedule_is_refused) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const schedule& s : {schedule{.form = shape::cosine, .epochs = 0},
                            {.form = shape::cosine, .final_factor = nan},
                            {.form = shape::cosine, .final_factor = -0.1},
                            {.form = shape::steps, .step_epochs = 0},
                            {.form = shape::steps, .step_factor = nan},
                            {.form = shape::steps, .step_factor = inf}})
    BOOST_CHECK_THROW(check(s), std::invalid_argument);
  for (const schedule& s : {schedule{.epochs = 0, .final_factor = nan, .step_epochs = 0},
                            {.form = shape::cosine, .step_epochs = 0},
                            {.form = shape::steps, .epochs = 0, .step_factor = 2}})
    BOOST_CHECK_NO_THROW(check(s));
  auto options = penstock::test::small_trainer();
  options.schedule = {.form = shape::steps, .step_epochs = 0};
  const penstock::test::training_file data(200);
  BOOST_CHECK_THROW(penstock::test::training_run(data, options), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_rate_that_is_not_finite_changes_no_weight) {
  const penstock::test::training_file data(200);
  auto options = penstock::test::small_trainer();
  options.schedule = {.form = shape::steps, .step_epochs = 1, .step_factor = 1e200};
  options.stage.optimizer = penstock::train::sgd{.learning_rate = 1e-300, .momentum = 0};
  penstock::test::training_run run(data, options);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  const auto before = run.weights();
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()).find("inf") != std::string::npos; });
  BOOST_TEST(penstock::test::same_bits<float>(run.weights(), before));
}

BOOST_AUTO_TEST_CASE(names_are_parsed) {
  BOOST_TEST((penstock::train::parse_schedule("cosine") == shape::cosine));
  BOOST_CHECK_THROW(penstock::train::parse_schedule("sine"), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
