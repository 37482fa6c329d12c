#include "training_file.hpp"

#include <penstock/train/early_stopping.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>
#include <stdexcept>
#include <vector>

using namespace penstock;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

train::metrics with_loss(double loss) { return {.loss_sum = loss * 10, .rows = 10, .weight_sum = 10}; }

struct course {
  std::vector<std::uint64_t> best;  ///< epochs that were the best when they were judged
  std::uint64_t ended = 0;          ///< epochs until training was over; 0: it never was
  train::judged_epochs state;
};

course follow(const train::early_stopping& rule, const std::vector<double>& losses) {
  course c;
  for (std::uint64_t epoch = 0; epoch < losses.size(); ++epoch) {
    if (train::judge(rule, epoch, with_loss(losses[epoch]), c.state)) c.best.push_back(epoch);
    if (train::is_over(rule, c.state) && c.ended == 0) c.ended = epoch + 1;
  }
  return c;
}

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_SUITE(early_stopping)

BOOST_AUTO_TEST_CASE(training_ends_after_patience_epochs_without_a_better_loss) {
  const course c = follow({.patience = 3}, {1.0, 0.8, 0.9, 0.85, 0.7, 0.7, 0.71, 0.72, 0.6});
  BOOST_TEST(c.best == (std::vector<std::uint64_t>{0, 1, 4, 8}), boost::test_tools::per_element());
  BOOST_TEST(c.ended == 8u);
}

BOOST_AUTO_TEST_CASE(without_patience_it_never_ends_and_the_best_is_known) {
  const course c = follow({}, {3, 2, 1, 5, 5, 5, 5, 5, 5});
  BOOST_TEST(c.ended == 0u);
  BOOST_TEST(c.state.best == 2u);
  BOOST_TEST(c.state.best_value == 1.0);
}

BOOST_AUTO_TEST_CASE(small_steps_are_no_improvement_until_they_add_up_to_the_least_change) {
  const course c = follow({.patience = 2, .min_delta = 0.1}, {1.0, 0.96, 0.89, 0.86, 0.84, 0.83});
  BOOST_TEST(c.ended == 5u);  // 0.89 counts against 1.0; 0.86 and 0.84 are less than 0.1 below that
  BOOST_TEST(c.state.best == 5u);
}

BOOST_AUTO_TEST_CASE(an_accuracy_is_the_better_the_larger_it_is) {
  const train::early_stopping rule{.watched = train::quantity::accuracy, .patience = 2};
  train::judged_epochs state;
  BOOST_TEST(train::judge(rule, 0, {.correct = 5, .rows = 10}, state));
  BOOST_TEST(train::judge(rule, 1, {.correct = 7, .rows = 10}, state));
  BOOST_TEST(!train::judge(rule, 2, {.correct = 6, .rows = 10}, state));
  BOOST_TEST(!train::is_over(rule, state));
  BOOST_TEST(!train::judge(rule, 3, {.correct = 7, .rows = 10}, state));
  BOOST_TEST(train::is_over(rule, state));
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_no_number_is_never_better) {
  const course c = follow({.patience = 2}, {not_a_number, 1.0, not_a_number, not_a_number});
  BOOST_TEST(c.best == (std::vector<std::uint64_t>{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(c.ended == 4u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_watched_is_refused) {
  BOOST_CHECK_THROW(train::parse_quantity("speed"), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::early_stopping{.min_delta = -1}), std::invalid_argument);
  BOOST_CHECK_THROW(train::check(train::early_stopping{.min_delta = not_a_number}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_judges_as_the_undisturbed_one) {
  const training_file data;
  auto options = small_trainer();
  options.stop.patience = 100;
  training_run whole(data, options), first(data, options), second(data, options);
  const auto one_epoch = [](training_run& run) {
    run.trainer.train_epoch(run.planned.training);
    return run.trainer.judge(run.trainer.evaluate(*run.planned.testing));
  };
  std::vector<bool> expected, found;
  for (int n = 0; n < 4; ++n) expected.push_back(one_epoch(whole));
  for (int n = 0; n < 2; ++n) found.push_back(one_epoch(first));
  const auto file = data.path("state.h5");
  first.trainer.save(file);
  second.trainer.resume(file);
  BOOST_TEST((second.trainer.position().judged == first.trainer.position().judged));
  for (int n = 0; n < 2; ++n) found.push_back(one_epoch(second));
  BOOST_TEST(found == expected, boost::test_tools::per_element());
  BOOST_TEST((second.trainer.position().judged == whole.trainer.position().judged));
  BOOST_TEST(second.trainer.position().judged.epochs == 4u);
}

BOOST_AUTO_TEST_CASE(an_epoch_that_was_not_judged_before_the_run_stopped_is_judged_after) {
  const training_file data;
  const auto options = small_trainer();
  training_run whole(data, options), first(data, options), second(data, options);
  const auto trained = whole.trainer.train_epoch(whole.planned.training);
  const auto tested = whole.trainer.evaluate(*whole.planned.testing);
  whole.trainer.judge(tested);
  first.trainer.train_epoch(first.planned.training);
  first.trainer.save(data.path("state.h5"));
  second.trainer.resume(data.path("state.h5"));
  BOOST_TEST(second.trainer.position().judged.epochs < second.trainer.position().epoch);
  BOOST_TEST(second.trainer.position().last.loss_sum == trained.training.loss_sum);
  second.trainer.judge(second.trainer.evaluate(*second.planned.testing));
  BOOST_TEST((second.trainer.position().judged == whole.trainer.position().judged));
}

BOOST_AUTO_TEST_CASE(another_quantity_begins_anew) {
  train::judged_epochs state;
  const train::early_stopping by_loss{.patience = 2}, by_accuracy{.watched = train::quantity::accuracy, .patience = 2};
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) train::judge(by_loss, epoch, with_loss(0.9), state);
  BOOST_TEST(train::is_over(by_loss, state));
  BOOST_TEST(!train::is_over(by_accuracy, state));
  BOOST_TEST(train::judge(by_accuracy, 3, {.correct = 3, .rows = 10}, state));  // 0.3 is below the loss
  BOOST_TEST(state.best == 3u);
  BOOST_TEST(state.best_value == 0.3);
  BOOST_TEST(state.waited == 0u);
}

BOOST_AUTO_TEST_CASE(a_run_that_goes_on_by_another_quantity_or_on_other_rows_says_what_it_forgets) {
  const training_file data;
  auto options = small_trainer();
  options.stop.patience = 1;
  {
    training_run run(data, options);
    BOOST_TEST(run.trainer.judge_on(*run.planned.testing) == "");
    for (const double loss : {1.0, 2.0}) {
      run.trainer.train_epoch(run.planned.training);
      run.trainer.judge(with_loss(loss));
    }
    run.trainer.save(data.path("state.h5"));
  }
  training_run same(data, options);
  BOOST_TEST(same.trainer.resume(data.path("state.h5")) == "");
  BOOST_TEST(same.trainer.judge_on(*same.planned.testing) == "");
  BOOST_TEST(same.trainer.is_over());

  auto other = options;
  other.stop.watched = train::quantity::accuracy;
  training_run by_accuracy(data, other);
  BOOST_TEST(by_accuracy.trainer.resume(data.path("state.h5")) ==
             "its epochs were judged by their loss, and this run's are by their accuracy: those before are forgotten");
  BOOST_TEST(!by_accuracy.trainer.is_over());
  BOOST_TEST(by_accuracy.trainer.position().judged.epochs == 0u);

  training_run moved(data, options);
  moved.trainer.resume(data.path("state.h5"));
  auto rows = data.open(options.stage.rows, pipeline::last_batch::pad, 77);
  const auto plan = rows.plan(gpu::device::host(), {});
  const auto testing = std::move(rows).build(plan, std::make_shared<gpu::memory>(gpu::device::host(), plan.ledger));
  const std::string said = moved.trainer.judge_on(testing);
  BOOST_TEST(said.find("seed 5") < said.find("seed 77"));
  BOOST_TEST(said.find("forgotten") != std::string::npos);
  BOOST_TEST(!moved.trainer.is_over());
}

BOOST_AUTO_TEST_CASE(nothing_is_judged_before_the_first_epoch) {
  const training_file data(200);
  training_run run(data, small_trainer());
  BOOST_CHECK_THROW(run.trainer.judge({}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
